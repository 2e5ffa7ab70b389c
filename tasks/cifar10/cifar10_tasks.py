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
"""The task of recognizing CIFAR-10's objects."""

import os
from typing import Optional, Union

import tensorflow as tf

from tasks import partitioned_clients
from tasks.cifar import cifar_models
from tasks.cifar import cifar_preprocessing
from tasks.cifar import cifar_tasks
from tasks.cifar import resnet
from tasks.cifar10 import cifar10_preprocessing
from tff_adaptive.data import sources
from tff_adaptive.simulation import task

NAME = 'cifar10'
# Of Kim et al., Adaptive Federated Learning with Auto-Tuned Clients.
DEFAULT_PROTOCOL = task.Protocol(
    client_batch_size=64,
    client_epochs=1,
    clients_per_round=10,
    total_rounds=2000,
)

_DATASET = cifar_tasks.CifarDataset(
    NAME, cifar10_preprocessing.NUM_CLASSES, cifar10_preprocessing.STATISTICS
)


def build_keras_model(
    model_id: Union[cifar_models.ModelID, str],
    seed: int,
    *,
    norm: str = resnet.GROUP_NORM,
    augmentation: str = cifar_preprocessing.DELTA_SGD,
) -> tf.keras.Model:
  """Builds the task's Keras model, see `cifar_models.build_keras_model`.

  Args:
    model_id: As there.
    seed: As there.
    norm: As there. Defaults to 'group'.
    augmentation: As there. Defaults to 'delta_sgd'.

  Returns:
    A model from images to the logits of ten classes.

  Raises:
    ValueError: As there.

  Example:

    >>> build_keras_model('simple_cnn', seed=1).count_params()
    122570
  """
  return cifar_models.build_keras_model(
      model_id,
      cifar10_preprocessing.NUM_CLASSES,
      seed,
      augmentation=augmentation,
      norm=norm,
  )


def create_cifar10_task(
    data_dir: Union[str, os.PathLike],
    *,
    num_clients: int = 100,
    alpha: float = 0.1,
    partition: str = 'dirichlet_with_replacement',
    examples_per_client: Optional[str] = None,
    shards_per_client: int = 2,
    min_size: int = 1,
    cap: bool = False,
    model_id: Union[cifar_models.ModelID, str] = cifar_models.ModelID.RESNET18,
    norm: str = resnet.GROUP_NORM,
    augmentation: str = cifar_preprocessing.DELTA_SGD,
    download: bool = False,
    seed: int = 0,
    protocol: Optional[task.Protocol] = None,
) -> task.Task:
  """Builds the task, by default as in the Delta-SGD experiments.

  The FedOpt experiments are `num_clients=500`, `examples_per_client='100'`,
  `partition='dirichlet_without_replacement'`, `augmentation='fedopt'`,
  `model_id='resnet18_v2'` and a protocol of 4,000 rounds of 10 clients with
  batches of 20.

  Args:
    data_dir: The folder of the data sets, see
      `cifar10_preprocessing.load_cifar10`.
    num_clients: Number of clients, a positive integer. Defaults to 100.
    alpha: How alike the clients are, as for `tasks.mnist.create_mnist_task`,
      like all about partitions. Defaults to 0.1.
    partition: Defaults to 'dirichlet_with_replacement'.
    examples_per_client: None (the default) for '500', but all images where the
      partition divides all of them.
    shards_per_client: Defaults to 2.
    min_size: Defaults to 1.
    cap: Defaults to False.
    model_id: Which model, see `cifar_models.build_keras_model`. Defaults to the
      ResNet-18 for CIFAR.
    norm: What it normalizes by: 'group' (the default), or 'batch' for the
      statistics of each batch, where the task has no functional model.
    augmentation: What happens to the images: 'delta_sgd' (the default) pads,
      crops, flips and scales by channel; 'fedopt' crops to 24x24, flips and
      scales by image; 'none' scales by channel. See
      `cifar_preprocessing.to_model_inputs`.
    download: Whether the data are downloaded if they are not in `data_dir`.
      Defaults to False.
    seed: The seed of the partition and of the initial weights, a non-negative
      integer. Defaults to 0.
    protocol: The numbers of training. None (the default) for
      `DEFAULT_PROTOCOL`: 2,000 rounds of 10 clients, one epoch in batches of
      64.

  Returns:
    The task; its central test data are the 10,000 test images. The clients
    share the training images, which stay uint8.

  Raises:
    FileNotFoundError: If the data are not there.
    OSError: If they could not be downloaded.
    TypeError: If a number is not an integer.
    ValueError: If the data are damaged, an argument is out of range or unknown,
      or the protocol wants more clients a round than there are.

  Example:

    >>> cifar10 = create_cifar10_task('data', model_id='simple_cnn', seed=1)
    >>> cifar10.train_data.num_examples('client_000')
    500

  References:
    Kim et al., Adaptive Federated Learning with Auto-Tuned Clients, ICLR 2024,
    https://arxiv.org/abs/2306.11201, Section 4; it trains on 450 of a client's
    500 images, here all of them count. Reddi et al., Adaptive Federated
    Optimization, ICLR 2021, https://arxiv.org/abs/2003.00295, Appendix C.
  """
  train, test = cifar10_preprocessing.load_cifar10(data_dir, download=download)
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
  return _DATASET.build_task(
      cifar_tasks.CifarData(clients, test),
      model_id=model_id,
      norm=norm,
      augmentation=augmentation,
      seed=seed,
      protocol=task.protocol_or_default(protocol, DEFAULT_PROTOCOL, clients),
  )


def create_cifar10_task_from_data(
    train_data: sources.ClientSource,
    central_test: sources.ExampleSource,
    *,
    test_data: Optional[sources.ClientSource] = None,
    model_id: Union[cifar_models.ModelID, str] = cifar_models.ModelID.RESNET18,
    norm: str = resnet.GROUP_NORM,
    augmentation: str = cifar_preprocessing.DELTA_SGD,
    seed: int = 0,
    protocol: Optional[task.Protocol] = None,
) -> task.Task:
  """Builds the task on data of the caller's own.

  Args:
    train_data: The clients, with the features 'image', uint8 of shape [32, 32,
      3], and 'label', the class, as tensorflow-datasets has them; see
      `cifar_tasks.read_published` for the forms that they may have.
    central_test: The test set, with the same features.
    test_data: Clients to evaluate on, like `train_data`. None (the default) for
      none.
    model_id: As for `create_cifar10_task`.
    norm: As for `create_cifar10_task`.
    augmentation: As for `create_cifar10_task`.
    seed: The seed of the initial weights. Defaults to 0.
    protocol: As for `create_cifar10_task`.

  Returns:
    The task.

  Raises:
    FileNotFoundError: If a file is missing.
    TypeError: If a part has the wrong type.
    ValueError: If the features are not those of CIFAR, an argument is unknown,
      or the protocol wants more clients a round than there are.

  Example:

    >>> examples = {
    ...     'image': np.zeros([3, 32, 32, 3], np.uint8),
    ...     'label': np.zeros([3], np.int32)}
    >>> protocol = task.Protocol(2, 1, clients_per_round=1, total_rounds=5)
    >>> create_cifar10_task_from_data(
    ...     {'a': examples}, examples, model_id='simple_cnn',
    ...     protocol=protocol).name
    'cifar10'
  """
  data = cifar_tasks.read_published(train_data, central_test, test_data)
  return _DATASET.build_task(
      data,
      model_id=model_id,
      norm=norm,
      augmentation=augmentation,
      seed=seed,
      protocol=task.protocol_or_default(protocol, DEFAULT_PROTOCOL, data.train),
  )
