# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""CIFAR-100, by default with TFF's clients, as in the FedOpt experiments.

The Delta-SGD experiments use `num_clients=100`, `augmentation='delta_sgd'`,
`partition='dirichlet_with_replacement'`, `model_id='resnet18'` or 'resnet50',
and a protocol of 2,000 rounds of 10 clients with batches of 64.

References:
  Reddi et al., Adaptive Federated Optimization, ICLR 2021,
  https://arxiv.org/abs/2003.00295, Appendices C and F. Kim et al., Adaptive
  Federated Learning with Auto-Tuned Clients, ICLR 2024,
  https://arxiv.org/abs/2306.11201, Section 4.
"""

import attrs

from tasks import cifar10
from tasks import clients
from tasks import definitions
from tasks import sources
from tasks.images import cifar_data

CIFAR100 = attrs.evolve(
    cifar10.CIFAR10,
    name='cifar100',
    summary="TFF's 500, else Pachinko",
    data=cifar_data.CIFAR100,
    models={'resnet18_v2': cifar10.MODELS['resnet18_v2'], **cifar10.MODELS},
    clients=clients.PachinkoPartition(coarse_classes=cifar_data.COARSE_CLASSES),
    protocol=definitions.Protocol(
        client_batch_size=20,
        client_epochs=1,
        clients_per_round=10,
        total_rounds=4000,
    ),
    source=sources.Dataset(
        name='cifar100',
        source='TensorFlow Federated, 500 and 100 clients',
        licence='no formal licence; cite Krizhevsky 2009',
        files=(
            # TFF publishes no checksum; this is the one in FedJAX.
            sources.tff_sqlite(
                'cifar100',
                'sha256:23d3916c9caa33395737ee560cc7cb77bbd05fc7b73647ee7be3a7e'
                '764172939',
                153_019_920,
            ),
        ),
    ),
)
