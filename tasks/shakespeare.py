# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Next-character prediction on Shakespeare's plays, with a client per role.

References:
  Reddi et al., Adaptive Federated Optimization, ICLR 2021,
  https://arxiv.org/abs/2003.00295, Section 5 and its published code;
  `tff.simulation.baselines.shakespeare.create_character_prediction_task`.
"""

from tasks import definitions
from tasks import sources
from tasks.language import shakespeare_data

SHAKESPEARE = definitions.TaskDefinition(
    name='shakespeare',
    summary='715 roles',
    data=shakespeare_data.Shakespeare(),
    models={
        'lstm': 'tasks.language.models:build_shakespeare_lstm',
        'small_lstm': 'tasks.language.models:build_shakespeare_small_lstm',
    },
    loss='tasks.keras_forms:build_softmax_loss',
    other_losses=definitions.SCORE_LOSSES,
    metrics='tasks.language.models:build_shakespeare_metrics',
    protocol=definitions.Protocol(
        client_batch_size=4,
        client_epochs=1,
        clients_per_round=10,
        total_rounds=1200,
    ),
    source=sources.Dataset(
        name='shakespeare',
        source='TensorFlow Federated, from Project Gutenberg by LEAF',
        licence='the text is in the public domain',
        files=(
            # TFF publishes no checksum; this is the one in FedJAX.
            sources.tff_sqlite(
                'shakespeare',
                'sha256:d3d11fceb9e105439ac6f4d52af6efafed5a2a1e1eb24c5bd2dd54c'
                'ed242f5c4',
                1_329_828,
            ),
        ),
    ),
)
