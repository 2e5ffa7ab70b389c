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
"""AG News: the topics of news, split among clients as in the publications."""

from tasks.ag_news.ag_news_models import build_functional_model
from tasks.ag_news.ag_news_models import build_keras_model
from tasks.ag_news.ag_news_models import build_variable_model_fn
from tasks.ag_news.ag_news_preprocessing import load_ag_news
from tasks.ag_news.ag_news_tasks import create_ag_news_task
from tasks.ag_news.ag_news_tasks import create_ag_news_task_from_data
from tasks.text_classification.text_models import ModelID
