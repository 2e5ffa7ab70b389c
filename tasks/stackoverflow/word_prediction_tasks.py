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
"""The task of predicting the next word of sentences on Stack Overflow."""

from collections.abc import Sequence
import os
from typing import Any, Optional, Union

from tasks import keras_classification
from tasks.stackoverflow import stackoverflow_files
from tasks.stackoverflow import stackoverflow_splits
from tasks.stackoverflow import word_prediction_models
from tasks.stackoverflow import word_prediction_preprocessing
from tff_adaptive.simulation import task

NAME = 'stackoverflow_nwp'
# Of Reddi et al., Adaptive Federated Optimization.
DEFAULT_PROTOCOL = task.Protocol(
    client_batch_size=16,
    client_epochs=1,
    clients_per_round=50,
    total_rounds=1500,
    max_examples=1000,
)


def create_stackoverflow_nwp_task(
    data_dir: Union[str, os.PathLike],
    *,
    vocab_size: int = stackoverflow_files.DEFAULT_VOCAB_SIZE,
    sequence_length: int = stackoverflow_files.DEFAULT_SEQUENCE_LENGTH,
    test_split: str = stackoverflow_files.TEST,
    num_test_examples: int = stackoverflow_files.DEFAULT_NUM_TEST_EXAMPLES,
    model_id: Union[
        word_prediction_models.ModelID, str
    ] = word_prediction_models.ModelID.LSTM,
    seed: int = 0,
    protocol: Optional[task.Protocol] = None,
) -> task.Task:
  """Builds the task on Stack Overflow, 342,477 clients.

  Clients are read when they take part in a round; at the start only their ids,
  and the clients that the test and validation examples are drawn from.

  Args:
    data_dir: The folder of the data sets, see
      `stackoverflow_files.load_stackoverflow` and `load_word_vocabulary`.
    vocab_size: How many words have tokens of their own, the most frequent ones.
      Defaults to 10,000.
    sequence_length: The length of the sequences, a positive integer. Defaults
      to 20.
    test_split: 'test' (the default), later posts of the training users, as in
      publications, or 'heldout', posts of other users.
    num_test_examples: How many examples of this split are drawn to test on
      centrally, and how many of 'heldout' to validate. Defaults to 10,000, as
      in publications; all of them, if there are not as many.
    model_id: Which model, see `word_prediction_models.ModelID`. Defaults to the
      LSTM.
    seed: The seed of the draw and of the initial weights, a non-negative
      integer. Defaults to 0.
    protocol: The numbers of training. None (the default) for
      `DEFAULT_PROTOCOL`: 1500 rounds of 50 clients with at most 1000 examples
      each, one epoch in batches of 16.

  Returns:
    The task. All clients of `test_split` are its `test_data`; `validation` are
    examples of 'heldout', None where that is what is tested on.

  Raises:
    FileNotFoundError: If the data are not there.
    TypeError: If a number is not an integer.
    ValueError: If the data are damaged, there are fewer words than wanted, an
      argument is out of range, the model or the split unknown, or the protocol
      wants more clients a round than there are.

  Example:

    >>> nwp = create_stackoverflow_nwp_task('data', seed=1)
    >>> nwp.train_data.element_spec['x'].shape
    TensorShape([20])

  References:
    Reddi et al., Adaptive Federated Optimization, ICLR 2021,
    https://arxiv.org/abs/2003.00295, Section 5 and its published code;
    `tff.simulation.baselines.stackoverflow.create_word_prediction_task`.
  """
  vocabulary = stackoverflow_files.load_word_vocabulary(data_dir, vocab_size)
  splits = stackoverflow_splits.open_splits(
      data_dir,
      word_prediction_preprocessing.FEATURES,
      test_split=test_split,
      num_test_examples=num_test_examples,
      seed=seed,
  )
  return create_stackoverflow_nwp_task_from_data(
      **splits._asdict(),
      vocabulary=vocabulary,
      sequence_length=sequence_length,
      model_id=model_id,
      seed=seed,
      protocol=protocol,
  )


def create_stackoverflow_nwp_task_from_data(
    train_data: Any,
    central_test: Any,
    vocabulary: Sequence[str],
    *,
    test_data: Any = None,
    validation: Any = None,
    sequence_length: int = stackoverflow_files.DEFAULT_SEQUENCE_LENGTH,
    model_id: Union[
        word_prediction_models.ModelID, str
    ] = word_prediction_models.ModelID.LSTM,
    seed: int = 0,
    protocol: Optional[task.Protocol] = None,
) -> task.Task:
  """Builds the task on sentences of the caller's own.

  Args:
    train_data: The clients, in any form that `data.read_clients` takes,
      with the feature 'tokens', a sentence an example: words with a space
      between two.
    central_test: The test set, in any form that `data.read_examples`
      takes, with the same feature.
    vocabulary: The words that have tokens of their own, the most frequent one
      first.
    test_data: Clients to evaluate on, as `train_data`; None (the default) for
      none.
    validation: Examples to validate on, as `central_test`; None (the default)
      for none.
    sequence_length: As for `create_stackoverflow_nwp_task`.
    model_id: As for `create_stackoverflow_nwp_task`.
    seed: The seed of the initial weights. Defaults to 0.
    protocol: As for `create_stackoverflow_nwp_task`.

  Returns:
    The task, with what `word_prediction_preprocessing.WordSequences` makes of
    the sentences. Clients that are read from SQLite stay in the file until they
    are asked for.

  Raises:
    FileNotFoundError: If a file is not there.
    TypeError: If a part has the wrong type.
    ValueError: If the data are not as described, an argument is out of range,
      the model unknown, or the protocol wants more clients a round than there
      are.

  Example:

    >>> text = {'tokens': ['to be or not to be']}
    >>> protocol = task.Protocol(2, 1, clients_per_round=1, total_rounds=5)
    >>> hamlet = create_stackoverflow_nwp_task_from_data(
    ...     {'hamlet': text}, text, ['to', 'be'], protocol=protocol)
    >>> hamlet.central_test['x'][0, :7].tolist()
    [4, 1, 2, 3, 3, 1, 2]
  """
  to_sequences = word_prediction_preprocessing.WordSequences(
      vocabulary, sequence_length
  )
  parts = stackoverflow_splits.read_parts(
      stackoverflow_splits.Splits(
          train_data, central_test, test_data, validation
      ),
      word_prediction_preprocessing.FEATURES,
      to_sequences,
      word_prediction_preprocessing.element_spec(sequence_length),
  )
  vocab_size = len(vocabulary)
  model_args = (model_id, seed, vocab_size, sequence_length)
  return task.Task(
      name=NAME,
      functional_model=word_prediction_models.build_functional_model(
          *model_args
      ),
      variable_model_fn=word_prediction_models.build_variable_model_fn(
          *model_args
      ),
      protocol=task.protocol_or_default(
          protocol, DEFAULT_PROTOCOL, parts.train_data
      ),
      num_classes=vocab_size + word_prediction_preprocessing.NUM_SPECIAL_TOKENS,
      representation_fn=keras_classification.to_representation_fn(
          word_prediction_models.build_keras_model(*model_args),
          word_prediction_models.input_spec(sequence_length),
      ),
      **parts._asdict(),
  )
