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
"""The task of telling the topics of news, with clients that differ."""

import os
from typing import Optional, Union

from tasks import partitioned_clients
from tasks.ag_news import ag_news_preprocessing
from tasks.text_classification import text_models
from tasks.text_classification import text_tasks
from tff_adaptive.data import sources
from tff_adaptive.simulation import task

DEFAULT_PROTOCOL = text_tasks.DEFAULT_PROTOCOL

_DATASET = ag_news_preprocessing.DATASET


def create_ag_news_task(
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
  """Builds the task on AG News, split as in the Delta-SGD experiments.

  Args:
    data_dir: The folder of the data sets, see
      `ag_news_preprocessing.load_ag_news`.
    num_clients: Number of clients, a positive integer. Defaults to 50.
    alpha: How alike the clients are: the concentration of the Dirichlet
      partitions, positive. Defaults to 1. The other partitions do without it.
    partition: How the training texts are split:
      'dirichlet_with_replacement' (the default, where clients may have texts in
      common, as in the published code), 'dirichlet_without_replacement',
      'dirichlet_per_class', 'shards' or 'iid'; see `partition.by_scheme`.
    examples_per_client: '500' for 500 texts for each client, '100-500' for a
      number that is drawn for each. None (the default) for '500', but all texts
      where the partition divides all of them ('dirichlet_per_class' and
      'shards', which take nothing else).
    shards_per_client: Of 'shards'. Defaults to 2.
    min_size: Of 'dirichlet_per_class': the texts that a client has at least.
      Defaults to 1.
    cap: Of 'dirichlet_per_class': whether a client with its even part of the
      texts gets nothing of further classes. Defaults to False.
    model_id: Which model, see `text_models.TextModel`. Defaults to the CNN,
      which trains in seconds; the publication's is DistilBERT.
    vocab_size: The number of tokens. Defaults to 10,000; the tokens are the
      most frequent words of the training texts, unless there is a
      `pretrained_dir`.
    max_length: How many tokens of a text count; shorter ones are padded.
      Defaults to 128; DistilBERT takes up to 512.
    pretrained_dir: Of DistilBERT: a folder with its tokens and weights, in
      Hugging Face's layout. None (the default) for random weights.
    seed: The seed of the partition and of the initial weights, a non-negative
      integer. Defaults to 0.
    protocol: The numbers of training. None (the default) for
      `DEFAULT_PROTOCOL`: 100 rounds of 5 clients, one epoch in batches of 16.

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

    >>> ag_news = create_ag_news_task('data', alpha=0.1, seed=1)
    >>> len(ag_news.train_data.client_ids)
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


def create_ag_news_task_from_data(
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
    model_id: As for `create_ag_news_task`.
    vocab_size: As for `create_ag_news_task`.
    max_length: As for `create_ag_news_task`.
    pretrained_dir: As for `create_ag_news_task`.
    seed: The seed of the initial weights. Defaults to 0.
    protocol: As for `create_ag_news_task`.

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

    >>> news = {'text': ['Shares fall', 'Cup final'], 'label': [2, 1]}
    >>> protocol = task.Protocol(2, 1, clients_per_round=1, total_rounds=5)
    >>> create_ag_news_task_from_data(
    ...     {'ann': news}, news, vocab_size=7, protocol=protocol).name
    'ag_news'
  """
  model = text_models.TextModel(
      model_id, vocab_size, max_length, pretrained_dir
  )
  clients, test = text_tasks.read_tokens(
      _DATASET, train_data, central_test, model
  )
  return text_tasks.build_task(_DATASET, clients, test, model, seed, protocol)
