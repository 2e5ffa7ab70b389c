# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Federated EMNIST: character recognition, and an autoencoder.

References:
  Reddi et al., Adaptive Federated Optimization, ICLR 2021,
  https://arxiv.org/abs/2003.00295, Appendix C, and its published code.
"""

import attrs

from tasks import definitions
from tasks import sources
from tasks.images import emnist_data

EMNIST_CR = definitions.ClassificationTask(
    name='emnist_cr',
    summary='3,400 writers',
    data=emnist_data.Characters(),
    models={
        'cnn_dropout': 'tasks.images.emnist_models:build_cnn_dropout',
        'cnn': 'tasks.images.emnist_models:build_cnn',
        '2nn': 'tasks.images.emnist_models:build_two_layer_dnn',
    },
    protocol=definitions.Protocol(
        client_batch_size=20,
        client_epochs=1,
        clients_per_round=10,
        total_rounds=1500,
    ),
    source=sources.Dataset(
        name='emnist',
        source='TensorFlow Federated, from NIST Special Database 19',
        licence='United States government work; cite Cohen et al. 2017',
        files=(
            sources.tff_sqlite(
                'emnist_all',
                'sha256:c3aaf91b4cf4e69d53d81627ad119eccdc878ff906f68e66063ff10'
                'f67faad48',
                170_507_172,
            ),
        ),
    ),
)
# The loss is the mean squared error between input and output pixels, through a
# bottleneck of 30 units.
EMNIST_AE = definitions.TaskDefinition(
    name='emnist_ae',
    summary='3,400 writers',
    data=emnist_data.Pictures(),
    models='tasks.images.emnist_models:build_autoencoder',
    loss='tasks.images.emnist_models:build_autoencoder_loss',
    metrics='tasks.images.emnist_models:build_autoencoder_metrics',
    protocol=attrs.evolve(EMNIST_CR.protocol, total_rounds=3000),
    source=EMNIST_CR.source,
    has_representations=False,
)
