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
"""Loading DBpedia from its files."""

import os
from typing import Union

from tasks.text_classification import text_files
from tff_adaptive.data import feature_arrays

DATASET = text_files.TextDataset(
    name='dbpedia', title='DBpedia', num_classes=14
)
NUM_CLASSES = DATASET.num_classes


def load_dbpedia(
    data_dir: Union[str, os.PathLike],
) -> tuple[feature_arrays.Examples, feature_arrays.Examples]:
  """Loads titles and abstracts of Wikipedia's articles with their classes.

  Read is the first of these that is there: `<data_dir>/dbpedia.jsonl.gz`;
  `<data_dir>/dbpedia_csv` with `train.csv` and `test.csv`, as released.
  tensorflow-datasets does not have this data set.

  Args:
    data_dir: The folder of the data sets.

  Returns:
    The training and the test examples, 560,000 and 70,000 in the original. In
    both 'text' is an array of UTF-8 strings (bytes) and 'label' the class, from
    Company (0) to WrittenWork (13); int32 of shape [num_examples].

  Raises:
    FileNotFoundError: If there are no data; says where they belong and how they
      are downloaded.
    ValueError: If the data are damaged: names the file and what is wrong.

  Example:

    >>> train, test = load_dbpedia('data')
    >>> train['text'].shape, test['label'].shape
    ((560000,), (70000,))

  References:
    Zhang et al., Character-level Convolutional Networks for Text
    Classification, NeurIPS 2015, https://arxiv.org/abs/1509.01626.
  """
  return DATASET.load(data_dir)
