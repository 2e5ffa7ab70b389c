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
"""The task of recognizing handwritten digits, with clients that differ."""

from typing import Optional, Union

from tasks import keras_classification
from tasks.digits import digits_models
from tasks.digits import digits_preprocessing
from tff_adaptive.data import client_data
from tff_adaptive.data import feature_arrays
from tff_adaptive.data import sources
from tff_adaptive.simulation import task

NAME = 'digits'
# No paper trains on this data set. Clients hold 28 or 29 examples: three steps
# in an epoch. Delta-SGD passes 0.95 on the test images after 60 rounds.
DEFAULT_PROTOCOL = task.Protocol(
    client_batch_size=10,
    client_epochs=2,
    clients_per_round=10,
    total_rounds=100,
)


def create_digits_task(
    *,
    num_clients: int = 50,
    alpha: float = 0.3,
    model_id: Union[digits_models.ModelID, str] = digits_models.ModelID.CNN,
    seed: int = 0,
    protocol: Optional[task.Protocol] = None,
) -> task.Task:
  """Builds the task on scikit-learn's digits; nothing is downloaded.

  Args:
    num_clients: Number of clients, at most 1,438. Defaults to 50, of 28 or 29
      examples each.
    alpha: How alike the clients are: the concentration of a Dirichlet
      distribution over classes for every client, positive; infinity for i.i.d.
      clients. Defaults to 0.3, where a client has five classes on average.
    model_id: Which model, see `digits_models.ModelID`. Defaults to the CNN.
    seed: The seed of the partition and of the initial weights, a non-negative
      integer. Defaults to 0. The split into training and test examples does not
      depend on it.
    protocol: The numbers of training. None (the default) for
      `DEFAULT_PROTOCOL`.

  Returns:
    The task; its central test data are 359 examples.

  Raises:
    TypeError: If a number is not an integer.
    ValueError: If an argument is out of range, the model unknown, or the
      protocol wants more clients a round than there are.

  Example:

    >>> digits = create_digits_task(num_clients=20, model_id='logistic', seed=1)
    >>> len(digits.train_data.client_ids), digits.train_data.total_examples
    (20, 1438)

  References:
    Alpaydin and Kaynak, Optical Recognition of Handwritten Digits, UCI Machine
    Learning Repository, 1998, https://doi.org/10.24432/C50P49, of which
    scikit-learn has the test part.
  """
  train, test = digits_preprocessing.load_digits()
  clients = digits_preprocessing.partition_digits(
      train['y'], num_clients, alpha, seed
  )
  return _create(
      client_data.PackedClientArrays.from_partition(train, clients),
      test,
      model_id,
      seed,
      protocol,
  )


def create_digits_task_from_data(
    train_data: sources.ClientSource,
    central_test: sources.ExampleSource,
    *,
    model_id: Union[digits_models.ModelID, str] = digits_models.ModelID.CNN,
    seed: int = 0,
    protocol: Optional[task.Protocol] = None,
) -> task.Task:
  """Builds the task on data of the caller's own.

  Args:
    train_data: The clients, in any form that `sources.read_clients` takes:
      arrays, a file (of which a SQLite file, or one with splits, gives the
      split 'train') or a `ClientData`. Features are those of `load_digits`: 'x'
      of shape [8, 8, 1], numbers in [0, 1], and 'y', the class.
    central_test: The test set, in any form that `sources.read_examples`
      takes; the split 'test' of a file.
    model_id: As for `create_digits_task`.
    seed: The seed of the initial weights. Defaults to 0.
    protocol: As for `create_digits_task`.

  Returns:
    The task.

  Raises:
    FileNotFoundError: If a file is missing.
    TypeError: If a part has the wrong type.
    ValueError: If the features are not those of the digits, the model is
      unknown, or the protocol wants more clients a round than there are.

  Example:

    >>> examples = {
    ...     'x': np.zeros([3, 8, 8, 1], np.float32),
    ...     'y': np.zeros([3], np.int32)}
    >>> protocol = task.Protocol(2, 1, clients_per_round=1, total_rounds=5)
    >>> create_digits_task_from_data(
    ...     {'a': examples}, examples, protocol=protocol).name
    'digits'
  """
  clients = sources.read_clients(
      train_data, digits_preprocessing.ELEMENT_SPEC, split_name='train'
  )
  test = sources.read_examples(
      central_test,
      digits_preprocessing.ELEMENT_SPEC,
      split_name='test',
      name='The central test data',
  )
  return _create(clients, test, model_id, seed, protocol)


def _create(
    train_data: client_data.ClientArrays,
    central_test: feature_arrays.Examples,
    model_id: Union[digits_models.ModelID, str],
    seed: int,
    protocol: Optional[task.Protocol],
) -> task.Task:
  """Builds the task on data with the features of `load_digits`."""
  return task.Task(
      name=NAME,
      functional_model=digits_models.build_functional_model(model_id, seed),
      variable_model_fn=digits_models.build_variable_model_fn(model_id, seed),
      train_data=train_data,
      central_test=central_test,
      protocol=task.protocol_or_default(protocol, DEFAULT_PROTOCOL, train_data),
      num_classes=digits_preprocessing.NUM_CLASSES,
      representation_fn=keras_classification.to_representation_fn(
          digits_models.build_keras_model(model_id, seed),
          digits_models.input_spec(),
      ),
  )
