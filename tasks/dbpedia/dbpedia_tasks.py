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
"""The task of telling what an article is about, with clients that differ."""

import os
from typing import Optional, Union

from tasks import partitioned_clients
from tasks.dbpedia import dbpedia_preprocessing
from tasks.text_classification import text_models
from tasks.text_classification import text_tasks
from tff_adaptive.data import sources
from tff_adaptive.simulation import task

DEFAULT_PROTOCOL = text_tasks.DEFAULT_PROTOCOL

_DATASET = dbpedia_preprocessing.DATASET


def create_dbpedia_task(
    data_dir: Union[str, os.PathLike],
    *,
    num_clients: int = 50,
    alpha: float = 1.0,
    partition: str = 'dirichlet_with_replacement',
    examples_per_client: Optional[str] = None,
    shards_per_client: int = 2,
    min_size: int = 1,
    cap: bool = False,
    model_id: Union[text_models.ModelID, str] = text_models.ModelID.CNN,
    vocab_size: int = text_models.DEFAULT_VOCAB_SIZE,
    max_length: int = text_models.DEFAULT_MAX_LENGTH,
    pretrained_dir: Optional[Union[str, os.PathLike]] = None,
    seed: int = 0,
    protocol: Optional[task.Protocol] = None,
) -> task.Task:
  """Builds the task on DBpedia, split as in the Delta-SGD experiments.

  All but the data set is as on AG News: partitions, models, tokens and numbers
  of training.

  Args:
    data_dir: The folder of the data sets, see
      `dbpedia_preprocessing.load_dbpedia`.
    num_clients: As for `tasks.ag_news.create_ag_news_task`, like all that is
      not explained here. Defaults to 50.
    alpha: Defaults to 1.
    partition: Defaults to 'dirichlet_with_replacement'.
    examples_per_client: None (the default) for '500', but all texts where the
      partition divides all of them.
    shards_per_client: Defaults to 2.
    min_size: Defaults to 1.
    cap: Defaults to False.
    model_id: Defaults to the CNN.
    vocab_size: Defaults to 10,000.
    max_length: Defaults to 128.
    pretrained_dir: None (the default) for random weights.
    seed: Defaults to 0.
    protocol: None (the default) for `DEFAULT_PROTOCOL`.

  Returns:
    The task; its central test data are the whole test set. The clients share
    the training texts: `train_data.values['x']` are their tokens, and
    `train_data.rows(client_id)` what a client holds.

  Raises:
    FileNotFoundError: If the data, or a file of `pretrained_dir`, are not
      there.
    ModuleNotFoundError: If transformers is needed and not installed.
    TypeError: If a number is not an integer.
    ValueError: If the data are damaged or have too few words, an argument is
      out of range, the model or the partition unknown, or the protocol wants
      more clients a round than there are.

  Example:

    >>> dbpedia = create_dbpedia_task('data', alpha=0.1, seed=1)
    >>> len(dbpedia.train_data.client_ids)
    50

  References:
    Kim et al., Adaptive Federated Learning with Auto-Tuned Clients, ICLR 2024,
    https://arxiv.org/abs/2306.11201, Section 4.
  """
  model = text_models.TextModel(
      model_id, vocab_size, max_length, pretrained_dir
  )
  train, test = text_tasks.load_tokens(_DATASET, data_dir, model)
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
  return text_tasks.build_task(_DATASET, clients, test, model, seed, protocol)


def create_dbpedia_task_from_data(
    train_data: sources.ClientSource,
    central_test: sources.ExampleSource,
    *,
    model_id: Union[text_models.ModelID, str] = text_models.ModelID.CNN,
    vocab_size: int = text_models.DEFAULT_VOCAB_SIZE,
    max_length: int = text_models.DEFAULT_MAX_LENGTH,
    pretrained_dir: Optional[Union[str, os.PathLike]] = None,
    seed: int = 0,
    protocol: Optional[task.Protocol] = None,
) -> task.Task:
  """Builds the task on texts of the caller's own.

  Args:
    train_data: The clients, with the features 'text', strings, and 'label', a
      class from 0 to 3. What `sources.read_clients` takes: `ClientArrays`,
      TFF's `ClientData`, a mapping from client ids to features, or the path of
      a file, of which the rows of split 'train' count if it has splits.
    central_test: The test set, with the same features. What
      `sources.read_examples` takes; of a file with splits, 'test'.
    model_id: As for `create_dbpedia_task`.
    vocab_size: As for `create_dbpedia_task`.
    max_length: As for `create_dbpedia_task`.
    pretrained_dir: As for `create_dbpedia_task`.
    seed: The seed of the initial weights. Defaults to 0.
    protocol: As for `create_dbpedia_task`.

  Returns:
    The task; its features are the tokens 'x' and the classes 'y'.

  Raises:
    FileNotFoundError: If a file is missing.
    ModuleNotFoundError: If transformers is needed and not installed.
    TypeError: If a part has the wrong type.
    ValueError: If the features are others, a label is no class, the texts have
      too few words, the model is unknown, or the protocol wants more clients a
      round than there are.

  Example:

    >>> texts = {'text': ['An author', 'A village'], 'label': [2, 1]}
    >>> protocol = task.Protocol(2, 1, clients_per_round=1, total_rounds=5)
    >>> create_dbpedia_task_from_data(
    ...     {'ann': texts}, texts, vocab_size=7, protocol=protocol).name
    'dbpedia'
  """
  model = text_models.TextModel(
      model_id, vocab_size, max_length, pretrained_dir
  )
  clients, test = text_tasks.read_tokens(
      _DATASET, train_data, central_test, model
  )
  return text_tasks.build_task(_DATASET, clients, test, model, seed, protocol)
