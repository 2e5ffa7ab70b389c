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
"""What Stack Overflow's tasks train, test and validate on."""

from collections.abc import Callable, Mapping
import os
from typing import Any, NamedTuple, Union

import numpy as np
import tensorflow as tf

from tasks.stackoverflow import stackoverflow_files
from tff_adaptive.data import feature_arrays
from tff_adaptive.data import sources
from tff_adaptive.data import transforms

_Preprocess = Callable[[feature_arrays.Examples], Mapping[str, np.ndarray]]


class Splits(NamedTuple):
  """The data of a task, by the names that `task.Task` has for them.

  Attributes:
    train_data: The clients to train on.
    central_test: The examples to test on.
    test_data: Clients to evaluate on, or None.
    validation: Examples to validate on, or None.
  """

  train_data: Any
  central_test: Any
  test_data: Any
  validation: Any


def open_splits(
    data_dir: Union[str, os.PathLike],
    features: Mapping[str, tf.TensorSpec],
    *,
    test_split: str,
    num_test_examples: int,
    seed: int,
) -> Splits:
  """Opens Stack Overflow and draws the examples to test and to validate on.

  Args:
    data_dir: The folder of the data sets.
    features: Which features, see `stackoverflow_files.load_stackoverflow`.
    test_split: 'test' or 'heldout'.
    num_test_examples: How many examples are drawn, of either.
    seed: The seed of the draw.

  Returns:
    The data as they are published. Nothing is to validate on where 'heldout' is
    what is tested on.

  Raises:
    FileNotFoundError: If the file is not there.
    ValueError: If it is damaged, or an argument out of range.
  """
  if test_split not in (stackoverflow_files.TEST, stackoverflow_files.HELDOUT):
    raise ValueError(
        f'`test_split` must be {stackoverflow_files.TEST!r} or '
        f'{stackoverflow_files.HELDOUT!r}, found {test_split!r}.'
    )

  def load(split_name):
    return stackoverflow_files.load_stackoverflow(
        data_dir, split_name, features
    )

  def sample(clients, name):
    return stackoverflow_files.sample_examples(
        clients, num_test_examples, seed, name
    )

  test = load(test_split)
  validation = None
  if test_split != stackoverflow_files.HELDOUT:
    validation = sample(load(stackoverflow_files.HELDOUT), 'validation')
  return Splits(
      train_data=load(stackoverflow_files.TRAIN),
      central_test=sample(test, 'central_test'),
      test_data=test,
      validation=validation,
  )


def read_parts(
    splits: Splits,
    features: Mapping[str, tf.TensorSpec],
    preprocess: _Preprocess,
    element_spec: feature_arrays.ElementSpec,
) -> Splits:
  """Reads data in any form and preprocesses them, lazy clients when asked for.

  Args:
    splits: The data, in the forms that `data.read_clients` takes.
    features: Which of their features, as they are published.
    preprocess: Makes of examples as many others.
    element_spec: The specification of these.

  Returns:
    The data as a task takes them.

  Raises:
    FileNotFoundError: If a file is not there.
    TypeError: If a part has the wrong type.
    ValueError: If the data are damaged or lack a feature.
  """

  def read_clients(data, name):
    if data is None:
      return None
    return transforms.map_clients(
        sources.read_clients(data, features, name=name),
        preprocess,
        element_spec,
        keeps_sizes=True,
    )

  def read_examples(data, name):
    if data is None:
      return None
    return preprocess(sources.read_examples(data, features, name=name))

  return Splits(
      train_data=read_clients(splits.train_data, 'The training data'),
      central_test=read_examples(splits.central_test, 'The test data'),
      test_data=read_clients(splits.test_data, 'The test data'),
      validation=read_examples(splits.validation, 'The validation data'),
  )
