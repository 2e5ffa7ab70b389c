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
"""The task of predicting the next character in Shakespeare's plays."""

import os
from typing import Any, Optional, Union

from tasks import keras_classification
from tasks.shakespeare import shakespeare_models
from tasks.shakespeare import shakespeare_preprocessing
from tff_adaptive.data import sources
from tff_adaptive.data import transforms
from tff_adaptive.simulation import task

NAME = 'shakespeare'
# Of Reddi et al., Adaptive Federated Optimization.
DEFAULT_PROTOCOL = task.Protocol(
    client_batch_size=4,
    client_epochs=1,
    clients_per_round=10,
    total_rounds=1200,
)


def create_shakespeare_task(
    data_dir: Union[str, os.PathLike],
    *,
    model_id: Union[
        shakespeare_models.ModelID, str
    ] = shakespeare_models.ModelID.LSTM,
    sequence_length: int = shakespeare_preprocessing.DEFAULT_SEQUENCE_LENGTH,
    seed: int = 0,
    protocol: Optional[task.Protocol] = None,
) -> task.Task:
  """Builds the task on Shakespeare's plays, 715 clients.

  Args:
    data_dir: The folder of the data sets, see
      `shakespeare_preprocessing.load_shakespeare`.
    model_id: Which model, see `shakespeare_models.ModelID`. Defaults to the one
      with two LSTM layers.
    sequence_length: The length of the sequences, a positive integer. Defaults
      to 80.
    seed: The seed of the initial weights, a non-negative integer. Defaults to
      0.
    protocol: The numbers of training. None (the default) for
      `DEFAULT_PROTOCOL`: 1200 rounds of 10 clients, one epoch in batches of 4.

  Returns:
    The task. An example is a sequence of tokens and of the tokens after them;
    the central test data are those of all test clients, which are also
    `test_data`.

  Raises:
    FileNotFoundError: If the data are not there.
    TypeError: If a number is not an integer.
    ValueError: If the data are damaged, the model unknown, `sequence_length`
      not positive, or the protocol wants more clients a round than there are.

  Example:

    >>> shakespeare = create_shakespeare_task('data', seed=1)
    >>> len(shakespeare.train_data.client_ids)
    715

  References:
    Reddi et al., Adaptive Federated Optimization, ICLR 2021,
    https://arxiv.org/abs/2003.00295, Section 5 and its published code;
    `tff.simulation.baselines.shakespeare.create_character_prediction_task`.
  """
  train, test = shakespeare_preprocessing.load_shakespeare(data_dir)
  return create_shakespeare_task_from_data(
      train,
      transforms.concatenate(test),
      test_data=test,
      model_id=model_id,
      sequence_length=sequence_length,
      seed=seed,
      protocol=protocol,
  )


def create_shakespeare_task_from_data(
    train_data: Any,
    central_test: Any,
    *,
    test_data: Any = None,
    model_id: Union[
        shakespeare_models.ModelID, str
    ] = shakespeare_models.ModelID.LSTM,
    sequence_length: int = shakespeare_preprocessing.DEFAULT_SEQUENCE_LENGTH,
    seed: int = 0,
    protocol: Optional[task.Protocol] = None,
) -> task.Task:
  """Builds the task on texts of the caller's own.

  Args:
    train_data: The clients, in any form that `sources.read_clients` takes,
      with the feature 'snippets', a text an example.
    central_test: The test set, in any form that `sources.read_examples`
      takes, with the same feature.
    test_data: Clients to evaluate on, as `train_data`; None (the default) for
      none.
    model_id: As for `create_shakespeare_task`.
    sequence_length: As for `create_shakespeare_task`.
    seed: The seed of the initial weights. Defaults to 0.
    protocol: As for `create_shakespeare_task`.

  Returns:
    The task, with what `shakespeare_preprocessing.to_sequences` makes of the
    texts.

  Raises:
    FileNotFoundError: If a file is not there.
    TypeError: If a part has the wrong type.
    ValueError: If the data are not as described, the model is unknown,
      `sequence_length` not positive, or the protocol wants more clients a round
      than there are.

  Example:

    >>> texts = {'snippets': np.array([b'To be, or not to be'], np.object_)}
    >>> protocol = task.Protocol(2, 1, clients_per_round=1, total_rounds=5)
    >>> hamlet = create_shakespeare_task_from_data(
    ...     {'hamlet': texts}, texts, protocol=protocol)
    >>> hamlet.central_test['x'].shape
    (1, 80)
  """
  features = shakespeare_preprocessing.FEATURES

  def read(clients: Any, name: str) -> Any:
    return shakespeare_preprocessing.preprocess_clients(
        sources.read_clients(clients, features, name=name),
        sequence_length,
    )

  clients = read(train_data, 'The training data')
  model_args = (model_id, seed, sequence_length)
  return task.Task(
      name=NAME,
      functional_model=shakespeare_models.build_functional_model(*model_args),
      variable_model_fn=shakespeare_models.build_variable_model_fn(*model_args),
      train_data=clients,
      central_test=shakespeare_preprocessing.to_sequences(
          sources.read_examples(central_test, features, name='The test data'),
          sequence_length,
      ),
      protocol=task.protocol_or_default(protocol, DEFAULT_PROTOCOL, clients),
      test_data=None if test_data is None else read(test_data, 'The test data'),
      num_classes=shakespeare_preprocessing.NUM_TOKENS,
      representation_fn=keras_classification.to_representation_fn(
          shakespeare_models.build_keras_model(*model_args),
          shakespeare_models.input_spec(sequence_length),
      ),
  )
