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
"""Loading AG News from its files."""

import os
from typing import Union

from tasks.text_classification import text_files
from tff_adaptive.data import feature_arrays

DATASET = text_files.TextDataset(
    name='ag_news',
    title='AG News',
    num_classes=4,
    tfds_name='ag_news_subset',
    tfds_fields=('title', 'description'),
)
NUM_CLASSES = DATASET.num_classes


def load_ag_news(
    data_dir: Union[str, os.PathLike],
) -> tuple[feature_arrays.Examples, feature_arrays.Examples]:
  """Loads titles and descriptions of news with their topics.

  Read is the first of these that is there: `<data_dir>/ag_news.jsonl.gz`;
  `<data_dir>/tfds/ag_news_subset`, as tensorflow-datasets prepares it;
  `<data_dir>/ag_news_csv` with `train.csv` and `test.csv`, as released.

  Args:
    data_dir: The folder of the data sets.

  Returns:
    The training and the test examples, 120,000 and 7,600 in the original. In
    both 'text' is an array of UTF-8 strings (bytes) and 'label' the topic:
    World, Sports, Business, Sci/Tech; int32 of shape [num_examples].

  Raises:
    FileNotFoundError: If there are no data; says where they belong and how they
      are downloaded.
    ValueError: If the data are damaged: names the file and what is wrong.

  Example:

    >>> train, test = load_ag_news('data')
    >>> train['text'].shape, test['label'].shape
    ((120000,), (7600,))

  References:
    Zhang et al., Character-level Convolutional Networks for Text
    Classification, NeurIPS 2015, https://arxiv.org/abs/1509.01626.
  """
  return DATASET.load(data_dir)
