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
"""The task of compressing the pictures of EMNIST, a client a writer."""

import os
from typing import Optional, Union

from tasks import client_memory
from tasks.emnist import emnist_ae_models
from tasks.emnist import emnist_preprocessing
from tff_adaptive.data import sources
from tff_adaptive.simulation import task

NAME = 'emnist_ae'
# Of Reddi et al., Adaptive Federated Optimization.
DEFAULT_PROTOCOL = task.Protocol(
    client_batch_size=20,
    client_epochs=1,
    clients_per_round=10,
    total_rounds=3000,
)


def create_emnist_ae_task(
    data_dir: Union[str, os.PathLike],
    *,
    only_digits: bool = False,
    max_bytes_in_memory: int = client_memory.DEFAULT_MAX_BYTES,
    seed: int = 0,
    protocol: Optional[task.Protocol] = None,
) -> task.Task:
  """Builds the autoencoder's task, as in the FedOpt experiments.

  The loss is the mean squared error between the pixels that go in and those
  that come out, through a bottleneck of 30 numbers.

  Args:
    data_dir: The folder of the data sets, see
      `emnist_preprocessing.load_emnist`.
    only_digits: Whether there are no letters. Defaults to False.
    max_bytes_in_memory: As for `create_emnist_cr_task`. Defaults to 1 GiB.
    seed: The seed of the initial weights, a non-negative integer. Defaults to
      0.
    protocol: The numbers of training. None (the default) for
      `DEFAULT_PROTOCOL`: 3,000 rounds of 10 clients, one epoch in batches of
      20.

  Returns:
    The task, which has no classes; its test data are the test examples of the
    same writers, its central test data those of all writers together. 'x' and
    'y' are one array.

  Raises:
    FileNotFoundError: If the data are not there.
    TypeError: If the seed is not an integer.
    ValueError: If the data are damaged, the seed is negative, or the protocol
      wants more clients a round than there are.

  Example:

    >>> emnist = create_emnist_ae_task('data', seed=1)
    >>> emnist.central_test['y'].shape
    (77483, 784)

  References:
    Reddi et al., Adaptive Federated Optimization, ICLR 2021,
    https://arxiv.org/abs/2003.00295, Appendix C, and its published code.
  """
  data = emnist_preprocessing.load_emnist(
      data_dir, only_digits=only_digits, max_bytes_in_memory=max_bytes_in_memory
  )
  return _create(data, seed, protocol)


def create_emnist_ae_task_from_data(
    train_data: sources.ClientSource,
    central_test: sources.ExampleSource,
    *,
    test_data: Optional[sources.ClientSource] = None,
    seed: int = 0,
    protocol: Optional[task.Protocol] = None,
) -> task.Task:
  """Builds the autoencoder's task on data of the caller's own.

  Args:
    train_data: The clients, as for `create_emnist_cr_task_from_data`, with the
      features 'label' (which is not used) and 'pixels'.
    central_test: The test set, with the same features.
    test_data: Clients to evaluate on one by one, like `train_data`. None (the
      default) for none.
    seed: As for `create_emnist_ae_task`.
    protocol: As for `create_emnist_ae_task`.

  Returns:
    The task.

  Raises:
    FileNotFoundError: If a file is missing.
    TypeError: If a part has the wrong type.
    ValueError: If the features are not those of EMNIST, or the protocol wants
      more clients a round than there are.

  Example:

    >>> examples = {'label': np.array([5, 0, 61]),
    ...             'pixels': np.ones([3, 28, 28], np.float32)}
    >>> protocol = task.Protocol(2, 1, clients_per_round=1, total_rounds=5)
    >>> create_emnist_ae_task_from_data(
    ...     {'a': examples}, examples, protocol=protocol).name
    'emnist_ae'
  """
  data = emnist_preprocessing.read_emnist(train_data, central_test, test_data)
  return _create(data, seed, protocol)


def _create(
    raw: emnist_preprocessing.WriterData,
    seed: int,
    protocol: Optional[task.Protocol],
) -> task.Task:
  """Builds the task on published data."""
  data = raw.map(
      emnist_preprocessing.to_autoencoder_pairs,
      emnist_preprocessing.AUTOENCODER_SPEC,
  )
  return task.Task(
      name=NAME,
      functional_model=emnist_ae_models.build_functional_autoencoder(seed),
      variable_model_fn=emnist_ae_models.build_variable_autoencoder_fn(seed),
      train_data=data.train,
      central_test=data.central_test,
      test_data=data.test,
      protocol=task.protocol_or_default(protocol, DEFAULT_PROTOCOL, data.train),
  )
