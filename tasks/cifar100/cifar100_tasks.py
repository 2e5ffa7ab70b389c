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
"""The task of recognizing CIFAR-100's objects."""

import os
from typing import Optional, Union

import tensorflow as tf

from tasks import partitioned_clients
from tasks.cifar import cifar_models
from tasks.cifar import cifar_preprocessing
from tasks.cifar import cifar_tasks
from tasks.cifar import resnet
from tasks.cifar100 import cifar100_preprocessing
from tff_adaptive.data import sources
from tff_adaptive.data import transforms
from tff_adaptive.simulation import task

NAME = 'cifar100'
# The partition that is TFF's own.
TFF = 'tff'
# Of Reddi et al., Adaptive Federated Optimization.
DEFAULT_PROTOCOL = task.Protocol(
    client_batch_size=20,
    client_epochs=1,
    clients_per_round=10,
    total_rounds=4000,
)

_PACHINKO = 'pachinko'
_NUM_CLIENTS = 500
_PACHINKO_SIZE = '100'
_DEFAULT_MODEL = cifar_models.ModelID.RESNET18_V2
_DATASET = cifar_tasks.CifarDataset(
    NAME, cifar100_preprocessing.NUM_CLASSES, cifar100_preprocessing.STATISTICS
)


def build_keras_model(
    model_id: Union[cifar_models.ModelID, str],
    seed: int,
    *,
    norm: str = resnet.GROUP_NORM,
    augmentation: str = cifar_preprocessing.FEDOPT,
) -> tf.keras.Model:
  """Builds the task's Keras model, see `cifar_models.build_keras_model`.

  Args:
    model_id: As there.
    seed: As there.
    norm: As there. Defaults to 'group'.
    augmentation: As there. Defaults to 'fedopt'.

  Returns:
    A model from images to the logits of a hundred classes.

  Raises:
    ValueError: As there.

  Example:

    >>> build_keras_model('resnet18_v2', seed=1).count_params()
    11227812
  """
  return cifar_models.build_keras_model(
      model_id,
      cifar100_preprocessing.NUM_CLASSES,
      seed,
      augmentation=augmentation,
      norm=norm,
  )


def create_cifar100_task(
    data_dir: Union[str, os.PathLike],
    *,
    num_clients: Optional[int] = None,
    alpha: float = 0.1,
    fine_alpha: float = 10.0,
    partition: str = TFF,
    examples_per_client: Optional[str] = None,
    shards_per_client: int = 2,
    min_size: int = 1,
    cap: bool = False,
    model_id: Union[cifar_models.ModelID, str] = _DEFAULT_MODEL,
    norm: str = resnet.GROUP_NORM,
    augmentation: str = cifar_preprocessing.FEDOPT,
    download: bool = False,
    seed: int = 0,
    protocol: Optional[task.Protocol] = None,
) -> task.Task:
  """Builds the task, by default as in the FedOpt experiments.

  The Delta-SGD experiments are `num_clients=100`, `augmentation='delta_sgd'`,
  `partition='dirichlet_with_replacement'`, `model_id='resnet18'` or 'resnet50',
  and a protocol of 2,000 rounds of 10 clients with batches of 64.

  Args:
    data_dir: The folder of the data sets, see
      `cifar100_preprocessing.load_tff_cifar100` and `load_cifar100` there.
    num_clients: Number of clients, a positive integer; of TFF's a seeded
      choice. None (the default) for all of TFF's, and for 500 elsewhere.
    alpha: How alike the clients are, the concentration of the Dirichlet
      partitions, and of the coarse classes in Pachinko allocation. Defaults to
      0.1.
    fine_alpha: The concentration of the classes in a coarse one, in Pachinko
      allocation. Defaults to 10.
    partition: How the training images are split. 'tff' (the default): the
      clients of TFF's file, if it is there, which 'pachinko' has drawn; if not,
      'pachinko'. That, see `partition.pachinko_allocation`, and the others, see
      `tasks.cifar10.create_cifar10_task`, split the central data set.
    examples_per_client: None (the default) for '100' in Pachinko allocation,
      for all images where the partition divides all of them, and else '500'.
    shards_per_client: Of 'shards'. Defaults to 2.
    min_size: Of 'dirichlet_per_class'. Defaults to 1.
    cap: Of 'dirichlet_per_class'. Defaults to False.
    model_id: Which model, see `cifar_models.build_keras_model`. Defaults to the
      ResNet-18 of TFF's baselines.
    norm: As for `tasks.cifar10.create_cifar10_task`. Defaults to 'group'.
    augmentation: As for `tasks.cifar10.create_cifar10_task`. Defaults to
      'fedopt'.
    download: Whether the central data are downloaded if there are no data in
      `data_dir`. Defaults to False.
    seed: The seed of the partition and of the initial weights, a non-negative
      integer. Defaults to 0.
    protocol: The numbers of training. None (the default) for
      `DEFAULT_PROTOCOL`: 4,000 rounds of 10 clients, one epoch in batches of
      20.

  Returns:
    The task; its central test data are the 10,000 test images. Clients hold
    images as uint8. With TFF's file it has 100 test clients.

  Raises:
    FileNotFoundError: If the data are not there.
    OSError: If they could not be downloaded.
    TypeError: If a number is not an integer.
    ValueError: If the data are damaged, an argument is out of range or unknown,
      or the protocol wants more clients a round than there are.

  Example:

    >>> cifar100 = create_cifar100_task('data', model_id='simple_cnn')
    >>> len(cifar100.train_data.client_ids)
    500

  References:
    Reddi et al., Adaptive Federated Optimization, ICLR 2021,
    https://arxiv.org/abs/2003.00295, Appendices C and F. Kim et al., Adaptive
    Federated Learning with Auto-Tuned Clients, ICLR 2024,
    https://arxiv.org/abs/2306.11201, Section 4.
  """
  data = None
  if partition == TFF:
    data = cifar100_preprocessing.load_tff_cifar100(data_dir)
    partition = _PACHINKO
  if data is None:
    train, test = cifar100_preprocessing.load_cifar100(
        data_dir, download=download
    )
    if examples_per_client is None and partition == _PACHINKO:
      examples_per_client = _PACHINKO_SIZE
    clients = partitioned_clients.to_clients(
        train,
        _NUM_CLIENTS if num_clients is None else num_clients,
        seed,
        partition=partition,
        alpha=alpha,
        examples_per_client=examples_per_client,
        shards_per_client=shards_per_client,
        min_size=min_size,
        cap=cap,
        coarse_labels=cifar100_preprocessing.COARSE_CLASSES[train['y']],
        fine_alpha=fine_alpha,
    )
    data = cifar_tasks.CifarData(clients, test)
  elif num_clients is not None:
    data = _with_some_clients(data, num_clients, seed)
  return _DATASET.build_task(
      data,
      model_id=model_id,
      norm=norm,
      augmentation=augmentation,
      seed=seed,
      protocol=task.protocol_or_default(protocol, DEFAULT_PROTOCOL, data.train),
  )


def _with_some_clients(
    data: cifar_tasks.CifarData, num_clients: int, seed: int
) -> cifar_tasks.CifarData:
  """Returns the same data with a part of the training clients."""
  chosen = transforms.sample_client_ids(
      data.train.client_ids, num_clients, seed
  )
  train = transforms.select_clients(data.train, chosen)
  return cifar_tasks.CifarData(train, data.central_test, data.test)


def create_cifar100_task_from_data(
    train_data: sources.ClientSource,
    central_test: sources.ExampleSource,
    *,
    test_data: Optional[sources.ClientSource] = None,
    model_id: Union[cifar_models.ModelID, str] = _DEFAULT_MODEL,
    norm: str = resnet.GROUP_NORM,
    augmentation: str = cifar_preprocessing.FEDOPT,
    seed: int = 0,
    protocol: Optional[task.Protocol] = None,
) -> task.Task:
  """Builds the task on data of the caller's own.

  Args:
    train_data: The clients, with the features 'image', uint8 of shape [32, 32,
      3], and 'label', the class, as TFF has them; see
      `cifar_tasks.read_published` for the forms that they may have.
    central_test: The test set, with the same features.
    test_data: Clients to evaluate on, like `train_data`. None (the default) for
      none.
    model_id: As for `create_cifar100_task`.
    norm: As for `create_cifar100_task`.
    augmentation: As for `create_cifar100_task`.
    seed: The seed of the initial weights. Defaults to 0.
    protocol: As for `create_cifar100_task`.

  Returns:
    The task.

  Raises:
    FileNotFoundError: If a file is missing.
    TypeError: If a part has the wrong type.
    ValueError: If the features are not those of CIFAR, an argument is unknown,
      or the protocol wants more clients a round than there are.

  Example:

    >>> examples = {'image': np.zeros([3, 32, 32, 3], np.uint8),
    ...             'label': np.array([5, 0, 99])}
    >>> protocol = task.Protocol(2, 1, clients_per_round=1, total_rounds=5)
    >>> create_cifar100_task_from_data(
    ...     {'a': examples}, examples, model_id='simple_cnn',
    ...     protocol=protocol).name
    'cifar100'
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
