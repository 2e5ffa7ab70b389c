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
"""The task of recognizing MNIST's digits, with clients that differ."""

from collections.abc import Mapping
import os
from typing import Optional, Union

import numpy as np

from tasks import keras_classification
from tasks import npz_images
from tasks import partitioned_clients
from tasks.mnist import mnist_models
from tasks.mnist import mnist_preprocessing
from tff_adaptive.data import client_data
from tff_adaptive.data import feature_arrays
from tff_adaptive.data import sources
from tff_adaptive.data import transforms
from tff_adaptive.simulation import task

NAME = 'mnist'
# Of Kim et al., Adaptive Federated Learning with Auto-Tuned Clients.
DEFAULT_PROTOCOL = task.Protocol(
    client_batch_size=64,
    client_epochs=1,
    clients_per_round=10,
    total_rounds=500,
)


def create_mnist_task(
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
  """Builds the task on MNIST, by default as in the Delta-SGD experiments.

  Args:
    data_dir: The folder of the data sets, see `mnist_preprocessing.load_mnist`.
    num_clients: Number of clients, a positive integer. Defaults to 100.
    alpha: How alike the clients are: the concentration of the Dirichlet
      partitions, positive. Defaults to 0.1, where a client has two or three
      classes. The other partitions do without it.
    partition: How the training images are split: 'dirichlet_with_replacement'
      (the default, where clients may have images in common, as in the
      published code), 'dirichlet_without_replacement', 'dirichlet_per_class',
      'shards' or 'iid'; see `partition.by_scheme`.
    examples_per_client: '500' for 500 images for each client, '100-500' for a
      number that is drawn for each. None (the default) for '500', but all
      images where the partition divides all of them ('dirichlet_per_class' and
      'shards', which take nothing else).
    shards_per_client: Of 'shards'. Defaults to 2.
    min_size: Of 'dirichlet_per_class': the images that a client has at least.
      Defaults to 1.
    cap: Of 'dirichlet_per_class': whether a client with its even part of the
      images gets nothing of further classes. Defaults to False.
    model_id: Which model, see `mnist_models.ModelID`. Defaults to the CNN.
    download: Whether the data are downloaded if they are not in `data_dir`.
      Defaults to False.
    seed: The seed of the partition and of the initial weights, a non-negative
      integer. Defaults to 0.
    protocol: The numbers of training. None (the default) for
      `DEFAULT_PROTOCOL`: 500 rounds of 10 clients, one epoch in batches of 64.

  Returns:
    The task; its central test data are the 10,000 test images. The clients
    share the training images: `train_data.values['y']` are the classes, and
    `train_data.rows(client_id)` what a client holds.

  Raises:
    FileNotFoundError: If the data are not there.
    OSError: If they could not be downloaded.
    TypeError: If a number is not an integer.
    ValueError: If the data are damaged, an argument is out of range, the model
      or the partition unknown, or the protocol wants more clients a round than
      there are.

  Example:

    >>> mnist = create_mnist_task('data', alpha=0.01, seed=1)
    >>> len(mnist.train_data.client_ids)
    100

  References:
    Kim et al., Adaptive Federated Learning with Auto-Tuned Clients, ICLR 2024,
    https://arxiv.org/abs/2306.11201, Section 4 and its published code. That
    code trains on 450 of a client's 500 images; here all of them count.
  """
  train, test = mnist_preprocessing.load_mnist(data_dir, download=download)
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
  return build_image_task(
      NAME, clients, test, model_id, seed, protocol, DEFAULT_PROTOCOL
  )


def create_mnist_task_from_data(
    train_data: sources.ClientSource,
    central_test: sources.ExampleSource,
    *,
    model_id: Union[mnist_models.ModelID, str] = mnist_models.ModelID.CNN,
    seed: int = 0,
    protocol: Optional[task.Protocol] = None,
) -> task.Task:
  """Builds the task on data of the caller's own.

  Args:
    train_data: The clients, as MNIST is published: with the features 'x', uint8
      of shape [28, 28], and 'y', the class, an integer. What
      `sources.read_clients` takes: `ClientArrays`, TFF's `ClientData`, a
      mapping from client ids to features, or the path of a file, of which the
      rows of split 'train' count.
    central_test: The test set, with the same features. What
      `sources.read_examples` takes, of a file the rows of split 'test'.
    model_id: As for `create_mnist_task`.
    seed: The seed of the initial weights. Defaults to 0.
    protocol: As for `create_mnist_task`.

  Returns:
    The task; its pixels are scaled by `npz_images.scale`.

  Raises:
    FileNotFoundError: If a file is missing.
    TypeError: If a part has the wrong type.
    ValueError: If the features are not those of MNIST, the model is unknown, or
      the protocol wants more clients a round than there are.

  Example:

    >>> examples = {
    ...     'x': np.zeros([3, 28, 28], np.uint8), 'y': np.zeros([3], np.int32)}
    >>> protocol = task.Protocol(2, 1, clients_per_round=1, total_rounds=5)
    >>> create_mnist_task_from_data(
    ...     {'a': examples}, examples, protocol=protocol).name
    'mnist'
  """
  clients, test = read_images(train_data, central_test)
  return build_image_task(
      NAME, clients, test, model_id, seed, protocol, DEFAULT_PROTOCOL
  )


def read_images(
    train_data: sources.ClientSource,
    central_test: sources.ExampleSource,
) -> tuple[client_data.ClientArrays, feature_arrays.Examples]:
  """Reads and scales the caller's own images, as MNIST is published.

  Args:
    train_data: As for `create_mnist_task_from_data`.
    central_test: As for `create_mnist_task_from_data`.

  Returns:
    The clients and the test set, with the features of
    `npz_images.ELEMENT_SPEC`.

  Raises:
    FileNotFoundError: If a file is missing.
    TypeError: If a part has the wrong type.
    ValueError: If the features are not those of `npz_images.RAW_SPEC`.
  """
  raw = sources.read_clients(
      train_data, npz_images.RAW_SPEC, split_name='train'
  )
  test = sources.read_examples(
      central_test,
      npz_images.RAW_SPEC,
      split_name='test',
      name='The central test data',
  )
  clients = transforms.map_clients(
      raw, npz_images.scale, npz_images.ELEMENT_SPEC, keeps_sizes=True
  )
  return clients, npz_images.scale(test)


def build_image_task(
    name: str,
    train_data: client_data.ClientArrays,
    central_test: Mapping[str, np.ndarray],
    model_id: Union[mnist_models.ModelID, str],
    seed: int,
    protocol: Optional[task.Protocol],
    default_protocol: task.Protocol,
) -> task.Task:
  """Builds a task with MNIST's models on scaled images.

  Args:
    name: The name of the task.
    train_data: The clients, with the features of `npz_images.ELEMENT_SPEC`.
    central_test: The test set, the same features with a dimension of examples
      in front.
    model_id: Which model, see `mnist_models.ModelID`.
    seed: The seed of the initial weights.
    protocol: The numbers of training; None for the task's own.
    default_protocol: The task's own.

  Returns:
    The task.

  Raises:
    ValueError: If the features do not fit the model, the model is unknown, or
      the protocol wants more clients a round than there are.
  """
  return task.Task(
      name=name,
      functional_model=mnist_models.build_functional_model(model_id, seed),
      variable_model_fn=mnist_models.build_variable_model_fn(model_id, seed),
      train_data=train_data,
      central_test=central_test,
      protocol=task.protocol_or_default(protocol, default_protocol, train_data),
      num_classes=npz_images.NUM_CLASSES,
      representation_fn=keras_classification.to_representation_fn(
          mnist_models.build_keras_model(model_id, seed),
          mnist_models.input_spec(),
      ),
  )
