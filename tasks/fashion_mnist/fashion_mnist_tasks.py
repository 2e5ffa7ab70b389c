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
"""The task of recognizing the clothes of Fashion-MNIST."""

import os
from typing import Optional, Union

from tasks import partitioned_clients
from tasks.fashion_mnist import fashion_mnist_preprocessing
from tasks.mnist import mnist_models
from tasks.mnist import mnist_tasks
from tff_adaptive.data import sources
from tff_adaptive.simulation import task

NAME = 'fashion_mnist'
# Of Kim et al., Adaptive Federated Learning with Auto-Tuned Clients.
DEFAULT_PROTOCOL = task.Protocol(
    client_batch_size=64,
    client_epochs=1,
    clients_per_round=10,
    total_rounds=1000,
)


def create_fashion_mnist_task(
    data_dir: Union[str, os.PathLike],
    *,
    num_clients: int = 100,
    alpha: float = 0.1,
    partition: str = 'dirichlet_with_replacement',
    examples_per_client: Optional[str] = None,
    shards_per_client: int = 2,
    min_size: int = 1,
    cap: bool = False,
    model_id: Union[mnist_models.ModelID, str] = mnist_models.ModelID.CNN,
    download: bool = False,
    seed: int = 0,
    protocol: Optional[task.Protocol] = None,
) -> task.Task:
  """Builds the task, by default as in the Delta-SGD experiments.

  All but the data set and the number of rounds is as on MNIST: partitions,
  models and scaling.

  Args:
    data_dir: The folder of the data sets, see
      `fashion_mnist_preprocessing.load_fashion_mnist`.
    num_clients: As for `tasks.mnist.create_mnist_task`, like all that is not
      explained here. Defaults to 100.
    alpha: Defaults to 0.1.
    partition: Defaults to 'dirichlet_with_replacement'.
    examples_per_client: None (the default) for '500', but all images where the
      partition divides all of them.
    shards_per_client: Defaults to 2.
    min_size: Defaults to 1.
    cap: Defaults to False.
    model_id: Which model, see `tasks.mnist.ModelID`: 'cnn' of the Delta-SGD
      experiments (the default), 'mlp' of those of FedCAda, or 'logistic'.
    download: Defaults to False.
    seed: The seed of the partition and of the initial weights. Defaults to 0.
    protocol: The numbers of training. None (the default) for
      `DEFAULT_PROTOCOL`: 1,000 rounds of 10 clients, one epoch in batches of
      64.

  Returns:
    The task; its central test data are the 10,000 test images.

  Raises:
    FileNotFoundError: If the data are not there.
    OSError: If they could not be downloaded.
    TypeError: If a number is not an integer.
    ValueError: If the data are damaged, an argument is out of range, the model
      or the partition unknown, or the protocol wants more clients a round than
      there are.

  Example:

    >>> fashion = create_fashion_mnist_task('data', model_id='mlp', seed=1)
    >>> fashion.protocol.total_rounds
    1000

  References:
    Kim et al., Adaptive Federated Learning with Auto-Tuned Clients, ICLR 2024,
    https://arxiv.org/abs/2306.11201, Section 4.
  """
  train, test = fashion_mnist_preprocessing.load_fashion_mnist(
      data_dir, download=download
  )
  clients = partitioned_clients.to_clients(
      train,
      num_clients,
      seed,
      partition=partition,
      alpha=alpha,
      examples_per_client=examples_per_client,
      shards_per_client=shards_per_client,
      min_size=min_size,
      cap=cap,
  )
  return mnist_tasks.build_image_task(
      NAME, clients, test, model_id, seed, protocol, DEFAULT_PROTOCOL
  )


def create_fashion_mnist_task_from_data(
    train_data: sources.ClientSource,
    central_test: sources.ExampleSource,
    *,
    model_id: Union[mnist_models.ModelID, str] = mnist_models.ModelID.CNN,
    seed: int = 0,
    protocol: Optional[task.Protocol] = None,
) -> task.Task:
  """Builds the task on data of the caller's own.

  Args:
    train_data: The clients, as for `tasks.mnist.create_mnist_task_from_data`:
      with the features 'x', uint8 of shape [28, 28], and 'y', the class.
    central_test: The test set, with the same features.
    model_id: As for `create_fashion_mnist_task`.
    seed: The seed of the initial weights. Defaults to 0.
    protocol: As for `create_fashion_mnist_task`.

  Returns:
    The task; its pixels are scaled by `npz_images.scale`.

  Raises:
    FileNotFoundError: If a file is missing.
    TypeError: If a part has the wrong type.
    ValueError: If the features are not those of Fashion-MNIST, the model is
      unknown, or the protocol wants more clients a round than there are.

  Example:

    >>> examples = {'x': np.zeros([3, 28, 28], np.uint8), 'y': [0, 9, 4]}
    >>> protocol = task.Protocol(2, 1, clients_per_round=1, total_rounds=5)
    >>> create_fashion_mnist_task_from_data(
    ...     {'a': examples}, examples, model_id='mlp', protocol=protocol).name
    'fashion_mnist'
  """
  clients, test = mnist_tasks.read_images(train_data, central_test)
  return mnist_tasks.build_image_task(
      NAME, clients, test, model_id, seed, protocol, DEFAULT_PROTOCOL
  )
