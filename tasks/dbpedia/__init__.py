# Copyright 2026 The tff_adaptive Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""DBpedia: kinds of things, split among clients as in the publications."""

from tasks.dbpedia.dbpedia_models import build_functional_model
from tasks.dbpedia.dbpedia_models import build_keras_model
from tasks.dbpedia.dbpedia_models import build_variable_model_fn
from tasks.dbpedia.dbpedia_preprocessing import load_dbpedia
from tasks.dbpedia.dbpedia_tasks import create_dbpedia_task
from tasks.dbpedia.dbpedia_tasks import create_dbpedia_task_from_data
from tasks.text_classification.text_models import ModelID
