# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Stack Overflow: next-word and tag prediction, with a client per user.

Clients are read when they are sampled. Only the client ids and the clients of
the test and validation samples are read at the start.

References:
  Reddi et al., Adaptive Federated Optimization, ICLR 2021,
  https://arxiv.org/abs/2003.00295, Section 5 and its published code;
  `tff.simulation.baselines.stackoverflow`.
"""

from tasks import definitions
from tasks import sources
from tasks.language import stackoverflow_data

_SOURCE = sources.Dataset(
    name='stackoverflow',
    source='TensorFlow Federated, from Stack Overflow',
    licence='CC BY-SA 3.0',
    files=(
        sources.tff_counts(
            'stackoverflow.word_count',
            'sha256:1dc00256d6e527c54b9756d968118378ae14e6692c0b3b6cad470cd'
            'd3f0c519c',
        ),
        sources.tff_counts(
            'stackoverflow.tag_count',
            'sha256:6fe281cec490d9384a290d560072438e7e2b377bbb823876ce7bd6f'
            '82696772d',
        ),
        sources.tff_sqlite('stackoverflow', None, None),
    ),
)

STACKOVERFLOW_NWP = definitions.TaskDefinition(
    name='stackoverflow_nwp',
    summary='342,477 users',
    data=stackoverflow_data.NextWords(),
    models={'lstm': 'tasks.language.models:build_stackoverflow_lstm'},
    loss='tasks.keras_forms:build_softmax_loss',
    metrics='tasks.language.models:build_next_word_metrics',
    protocol=definitions.Protocol(
        client_batch_size=16,
        client_epochs=1,
        clients_per_round=50,
        total_rounds=1500,
        max_examples=1000,
    ),
    source=_SOURCE,
)
STACKOVERFLOW_LR = definitions.TaskDefinition(
    name='stackoverflow_lr',
    summary='342,477 users',
    data=stackoverflow_data.Tags(),
    models={
        'words': 'tasks.language.tag_models:build_of_words',
        'logistic': 'tasks.language.tag_models:build_of_frequencies',
    },
    model_help=(
        'The form of the inputs: lists of words, or frequencies of words.'
    ),
    loss='tasks.language.tag_models:build_loss',
    metrics='tasks.language.tag_models:build_metrics',
    protocol=definitions.Protocol(
        client_batch_size=100,
        client_epochs=1,
        clients_per_round=10,
        total_rounds=1500,
        max_examples=1000,
    ),
    source=_SOURCE,
    has_representations=False,
)
