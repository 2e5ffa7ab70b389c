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
"""The task of predicting the tags of sentences on Stack Overflow."""

from collections.abc import Sequence
import os
from typing import Any, Optional, Union

from tasks import keras_classification
from tasks.stackoverflow import stackoverflow_files
from tasks.stackoverflow import stackoverflow_splits
from tasks.stackoverflow import tag_prediction_models
from tasks.stackoverflow import tag_prediction_preprocessing
from tff_adaptive.simulation import task

NAME = 'stackoverflow_lr'
# Of Reddi et al., Adaptive Federated Optimization.
DEFAULT_PROTOCOL = task.Protocol(
    client_batch_size=100,
    client_epochs=1,
    clients_per_round=10,
    total_rounds=1500,
    max_examples=1000,
)


def create_stackoverflow_lr_task(
    data_dir: Union[str, os.PathLike],
    *,
    vocab_size: int = stackoverflow_files.DEFAULT_VOCAB_SIZE,
    tag_vocab_size: int = stackoverflow_files.DEFAULT_TAG_VOCAB_SIZE,
    max_words: int = tag_prediction_preprocessing.DEFAULT_MAX_WORDS,
    test_split: str = stackoverflow_files.TEST,
    num_test_examples: int = stackoverflow_files.DEFAULT_NUM_TEST_EXAMPLES,
    model_id: Union[
        tag_prediction_models.ModelID, str
    ] = tag_prediction_models.ModelID.WORDS,
    seed: int = 0,
    protocol: Optional[task.Protocol] = None,
) -> task.Task:
  """Builds the task on Stack Overflow, 342,477 clients.

  Clients are read when they take part in a round; at the start only their ids,
  and the clients that the test and validation examples are drawn from.

  Args:
    data_dir: The folder of the data sets, see
      `stackoverflow_files.load_stackoverflow`, `load_word_vocabulary` and
      `load_tag_vocabulary`.
    vocab_size: How many words count, the most frequent ones. Defaults to
      10,000.
    tag_vocab_size: How many tags count, the most frequent ones, 5 or more.
      Defaults to 500.
    max_words: Of the model 'words': how many words of an example count, a
      positive integer; of longer ones only the first words do. Defaults to
      1024.
    test_split: 'test' (the default), later posts of the training users, as in
      publications, or 'heldout', posts of other users. Where tags of the test
      split are rare in training, as in collections of young sites, 'heldout'
      says more.
    num_test_examples: How many examples of this split are drawn to test on
      centrally, and how many of 'heldout' to validate. Defaults to 10,000, as
      in publications; all of them, if there are not as many.
    model_id: Which form of the model, see `tag_prediction_models.ModelID`; the
      data take its form. Defaults to 'words'.
    seed: The seed of the draw and of the initial weights, a non-negative
      integer. Defaults to 0.
    protocol: The numbers of training. None (the default) for
      `DEFAULT_PROTOCOL`: 1500 rounds of 10 clients with at most 1000 examples
      each, one epoch in batches of 100.

  Returns:
    The task. All clients of `test_split` are its `test_data`; `validation` are
    examples of 'heldout', None where that is what is tested on.

  Raises:
    FileNotFoundError: If the data are not there.
    TypeError: If a number is not an integer.
    ValueError: If the data are damaged, there are fewer words or tags than
      wanted, an argument is out of range, the model or the split unknown, or
      the protocol wants more clients a round than there are.

  Example:

    >>> tags = create_stackoverflow_lr_task('data', test_split='heldout')
    >>> tags.train_data.element_spec['y'].shape
    TensorShape([500])

  References:
    Reddi et al., Adaptive Federated Optimization, ICLR 2021,
    https://arxiv.org/abs/2003.00295, Section 5 and its published code;
    `tff.simulation.baselines.stackoverflow.create_tag_prediction_task`.
  """
  vocabulary = stackoverflow_files.load_word_vocabulary(data_dir, vocab_size)
  tag_vocabulary = stackoverflow_files.load_tag_vocabulary(
      data_dir, tag_vocab_size
  )
  splits = stackoverflow_splits.open_splits(
      data_dir,
      tag_prediction_preprocessing.FEATURES,
      test_split=test_split,
      num_test_examples=num_test_examples,
      seed=seed,
  )
  return create_stackoverflow_lr_task_from_data(
      **splits._asdict(),
      vocabulary=vocabulary,
      tag_vocabulary=tag_vocabulary,
      max_words=max_words,
      model_id=model_id,
      seed=seed,
      protocol=protocol,
  )


def create_stackoverflow_lr_task_from_data(
    train_data: Any,
    central_test: Any,
    vocabulary: Sequence[str],
    tag_vocabulary: Sequence[str],
    *,
    test_data: Any = None,
    validation: Any = None,
    max_words: int = tag_prediction_preprocessing.DEFAULT_MAX_WORDS,
    model_id: Union[
        tag_prediction_models.ModelID, str
    ] = tag_prediction_models.ModelID.WORDS,
    seed: int = 0,
    protocol: Optional[task.Protocol] = None,
) -> task.Task:
  """Builds the task on sentences of the caller's own.

  Args:
    train_data: The clients, in any form that `data.read_clients` takes,
      with the features 'tokens' and 'title', words with white space between
      two, and 'tags', with a '|' between two.
    central_test: The test set, in any form that `data.read_examples`
      takes, with the same features.
    vocabulary: The words that count, the most frequent one first.
    tag_vocabulary: The tags that count, the most frequent one first.
    test_data: Clients to evaluate on, as `train_data`; None (the default) for
      none.
    validation: Examples to validate on, as `central_test`; None (the default)
      for none.
    max_words: As for `create_stackoverflow_lr_task`.
    model_id: As for `create_stackoverflow_lr_task`.
    seed: The seed of the initial weights. Defaults to 0.
    protocol: As for `create_stackoverflow_lr_task`.

  Returns:
    The task, with what `tag_prediction_preprocessing` makes of the sentences in
    the form of the model. Clients that are read from SQLite stay in the file
    until they are asked for.

  Raises:
    FileNotFoundError: If a file is not there.
    TypeError: If a part has the wrong type.
    ValueError: If the data are not as described, an argument is out of range,
      the model unknown, or the protocol wants more clients a round than there
      are.

  Example:

    >>> text = {'tokens': ['to be'], 'title': ['hamlet'], 'tags': ['b|e']}
    >>> protocol = task.Protocol(2, 1, clients_per_round=1, total_rounds=5)
    >>> hamlet = create_stackoverflow_lr_task_from_data(
    ...     {'hamlet': text}, text, ['to', 'be'], 'a b c d e'.split(),
    ...     protocol=protocol)
    >>> hamlet.central_test['y'].tolist()
    [[0.0, 1.0, 0.0, 0.0, 1.0]]
  """
  model_id = keras_classification.to_model_id(
      tag_prediction_models.ModelID, model_id
  )
  to_bags: tag_prediction_preprocessing.BagsOfWords
  if model_id is tag_prediction_models.ModelID.WORDS:
    to_bags = tag_prediction_preprocessing.WordLists(
        vocabulary, tag_vocabulary, max_words
    )
  else:
    to_bags = tag_prediction_preprocessing.WordFrequencies(
        vocabulary, tag_vocabulary
    )
  parts = stackoverflow_splits.read_parts(
      stackoverflow_splits.Splits(
          train_data, central_test, test_data, validation
      ),
      tag_prediction_preprocessing.FEATURES,
      to_bags,
      to_bags.element_spec,
  )
  sizes = (len(vocabulary), len(tag_vocabulary), max_words)
  return task.Task(
      name=NAME,
      functional_model=tag_prediction_models.build_functional_model(
          model_id, seed, *sizes
      ),
      variable_model_fn=tag_prediction_models.build_variable_model_fn(
          model_id, seed, *sizes
      ),
      protocol=task.protocol_or_default(
          protocol, DEFAULT_PROTOCOL, parts.train_data
      ),
      **parts._asdict(),
  )
