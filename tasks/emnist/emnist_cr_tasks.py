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
"""The task of recognizing the characters of EMNIST, a client a writer."""

import os
from typing import Optional, Union

from tasks import client_memory
from tasks import keras_classification
from tasks.emnist import emnist_models
from tasks.emnist import emnist_preprocessing
from tff_adaptive.data import sources
from tff_adaptive.simulation import task

NAME = 'emnist_cr'
# Of Reddi et al., Adaptive Federated Optimization.
DEFAULT_PROTOCOL = task.Protocol(
    client_batch_size=20,
    client_epochs=1,
    clients_per_round=10,
    total_rounds=1500,
)

_DEFAULT_MODEL = emnist_models.ModelID.CNN_DROPOUT


def create_emnist_cr_task(
    data_dir: Union[str, os.PathLike],
    *,
    only_digits: bool = False,
    model_id: Union[emnist_models.ModelID, str] = _DEFAULT_MODEL,
    max_bytes_in_memory: int = client_memory.DEFAULT_MAX_BYTES,
    seed: int = 0,
    protocol: Optional[task.Protocol] = None,
) -> task.Task:
  """Builds the task, by default as in the FedOpt experiments.

  Args:
    data_dir: The folder of the data sets, see
      `emnist_preprocessing.load_emnist`.
    only_digits: Whether there are no letters: 10 classes and not 62. Defaults
      to False.
    model_id: Which model, see `emnist_models.ModelID`. Defaults to the CNN with
      dropout.
    max_bytes_in_memory: Up to what size the clients of a split are held in
      memory, where rounds are fastest, see `emnist_preprocessing.load_emnist`.
      Results do not depend on it. Defaults to 1 GiB.
    seed: The seed of the initial weights, a non-negative integer. Defaults to
      0.
    protocol: The numbers of training. None (the default) for
      `DEFAULT_PROTOCOL`: 1,500 rounds of 10 clients, one epoch in batches of
      20.

  Returns:
    The task; its test data are the test examples of the same writers, its
    central test data those of all writers together.

  Raises:
    FileNotFoundError: If the data are not there.
    TypeError: If the seed is not an integer.
    ValueError: If the data are damaged, the model is unknown, the seed is
      negative, or the protocol wants more clients a round than there are.

  Example:

    >>> emnist = create_emnist_cr_task('data', model_id='2nn', seed=1)
    >>> len(emnist.train_data.client_ids), len(emnist.central_test['y'])
    (3400, 77483)

  References:
    Reddi et al., Adaptive Federated Optimization, ICLR 2021,
    https://arxiv.org/abs/2003.00295, Appendix C, and its published code.
  """
  data = emnist_preprocessing.load_emnist(
      data_dir, only_digits=only_digits, max_bytes_in_memory=max_bytes_in_memory
  )
  return _create(data, only_digits, model_id, seed, protocol)


def create_emnist_cr_task_from_data(
    train_data: sources.ClientSource,
    central_test: sources.ExampleSource,
    *,
    test_data: Optional[sources.ClientSource] = None,
    only_digits: bool = False,
    model_id: Union[emnist_models.ModelID, str] = _DEFAULT_MODEL,
    seed: int = 0,
    protocol: Optional[task.Protocol] = None,
) -> task.Task:
  """Builds the task on data of the caller's own.

  Args:
    train_data: The clients, as federated EMNIST is published: with the features
      'label', the class, an integer, and 'pixels', float32 of shape [28, 28]
      with 1 for the background and 0 for the ink. What
      `sources.read_clients` takes: `ClientArrays`, TFF's `ClientData`, a
      mapping from client ids to features, or the path of a file, of which the
      rows of split 'train' count.
    central_test: The test set, with the same features. What
      `sources.read_examples` takes, of a file the rows of split 'test'.
    test_data: Clients to evaluate on one by one, like `train_data`, of a file
      the rows of split 'test'. None (the default) for none.
    only_digits: As for `create_emnist_cr_task`.
    model_id: As for `create_emnist_cr_task`.
    seed: As for `create_emnist_cr_task`.
    protocol: As for `create_emnist_cr_task`.

  Returns:
    The task.

  Raises:
    FileNotFoundError: If a file is missing.
    TypeError: If a part has the wrong type.
    ValueError: If the features are not those of EMNIST, the model is unknown,
      or the protocol wants more clients a round than there are.

  Example:

    >>> examples = {'label': np.array([5, 0, 61]),
    ...             'pixels': np.ones([3, 28, 28], np.float32)}
    >>> protocol = task.Protocol(2, 1, clients_per_round=1, total_rounds=5)
    >>> create_emnist_cr_task_from_data(
    ...     {'a': examples}, examples, model_id='2nn', protocol=protocol).name
    'emnist_cr'
  """
  data = emnist_preprocessing.read_emnist(train_data, central_test, test_data)
  return _create(data, only_digits, model_id, seed, protocol)


def _create(
    raw: emnist_preprocessing.WriterData,
    only_digits: bool,
    model_id: Union[emnist_models.ModelID, str],
    seed: int,
    protocol: Optional[task.Protocol],
) -> task.Task:
  """Builds the task on published data."""
  data = raw.map(
      emnist_preprocessing.to_characters, emnist_preprocessing.CHARACTER_SPEC
  )
  model = (model_id, seed, only_digits)
  return task.Task(
      name=NAME,
      functional_model=emnist_models.build_functional_model(*model),
      variable_model_fn=emnist_models.build_variable_model_fn(*model),
      train_data=data.train,
      central_test=data.central_test,
      test_data=data.test,
      protocol=task.protocol_or_default(protocol, DEFAULT_PROTOCOL, data.train),
      num_classes=emnist_preprocessing.num_classes(only_digits),
      representation_fn=keras_classification.to_representation_fn(
          emnist_models.build_keras_model(*model), emnist_models.input_spec()
      ),
  )
