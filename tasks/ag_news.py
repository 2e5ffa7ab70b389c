# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""AG News topic classification, split as in the Delta-SGD experiments.

References:
  Kim et al., Adaptive Federated Learning with Auto-Tuned Clients, ICLR 2024,
  https://arxiv.org/abs/2306.11201, Section 4. Zhang et al., Character-level
  Convolutional Networks for Text Classification, NeurIPS 2015,
  https://arxiv.org/abs/1509.01626.
"""

from tasks import clients
from tasks import definitions
from tasks import sources
from tasks.texts import text_files

_URL = (
    'https://raw.githubusercontent.com/mhjabreel/CharCnn_Keras/master/data/'
    'ag_news_csv/'
)

AG_NEWS = definitions.ClassificationTask(
    name='ag_news',
    summary='50, Dirichlet 1',
    data=text_files.Texts(
        'ag_news',
        'AG News',
        4,
        tfds_name='ag_news_subset',
        tfds_fields=('title', 'description'),
    ),
    models={
        'cnn': 'tasks.texts.text_models:build_cnn',
        'transformer': 'tasks.texts.text_models:build_transformer',
        'distilbert': 'tasks.texts.text_models:build_distilbert',
        'bag_of_words': 'tasks.texts.text_models:build_bag_of_words',
    },
    clients=clients.delta_sgd_clients(50, alpha=1.0, noun='texts'),
    protocol=definitions.Protocol(
        client_batch_size=16,
        client_epochs=1,
        clients_per_round=5,
        total_rounds=100,
    ),
    source=sources.Dataset(
        name='ag_news',
        source='Zhang et al. 2015, by mhjabreel/CharCnn_Keras',
        licence='research and other non-commercial use',
        files=(
            # The checksums are those in torchtext.
            sources.RemoteFile(
                url=f'{_URL}train.csv',
                path='ag_news_csv/train.csv',
                digest='md5:b1a00f826fdfbd249f79597b59e1dc12',
                size=29_470_338,
            ),
            sources.RemoteFile(
                url=f'{_URL}test.csv',
                path='ag_news_csv/test.csv',
                digest='md5:d52ea96a97a2d943681189a97654912d',
                size=1_857_427,
            ),
        ),
        by_hand='ag_news.jsonl.gz (rows with split, text and label)',
    ),
)
