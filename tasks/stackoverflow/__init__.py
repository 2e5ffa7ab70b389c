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
"""Stack Overflow, a client a user: the next word of texts, and their tags."""

from tasks.stackoverflow.stackoverflow_files import load_stackoverflow
from tasks.stackoverflow.stackoverflow_files import load_tag_vocabulary
from tasks.stackoverflow.stackoverflow_files import load_word_vocabulary
from tasks.stackoverflow.tag_prediction_models import ModelID as TagModelID
from tasks.stackoverflow.tag_prediction_tasks import (
    create_stackoverflow_lr_task,
)
from tasks.stackoverflow.tag_prediction_tasks import (
    create_stackoverflow_lr_task_from_data,
)
from tasks.stackoverflow.word_prediction_models import ModelID as WordModelID
from tasks.stackoverflow.word_prediction_tasks import (
    create_stackoverflow_nwp_task,
)
from tasks.stackoverflow.word_prediction_tasks import (
    create_stackoverflow_nwp_task_from_data,
)
