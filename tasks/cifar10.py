# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""CIFAR-10, by default as in the Delta-SGD experiments.

The FedOpt experiments use `num_clients=500`, `examples_per_client='100'`,
`partition='dirichlet_without_replacement'`, `augmentation='fedopt'`,
`model_id='resnet18_v2'` and a protocol of 4,000 rounds of 10 clients with
batches of 20.

References:
  Kim et al., Adaptive Federated Learning with Auto-Tuned Clients, ICLR 2024,
  https://arxiv.org/abs/2306.11201, Section 4; it trains on 450 of a client's
  500 images, this task on all of them. Reddi et al., Adaptive Federated
  Optimization, ICLR 2021, https://arxiv.org/abs/2003.00295, Appendix C.
"""

from tasks import clients
from tasks import definitions
from tasks import sources
from tasks.images import cifar_data

MODELS = {
    'resnet18': 'tasks.images.resnet:build_resnet18',
    'resnet50': 'tasks.images.resnet:build_resnet50',
    'resnet18_v2': 'tasks.images.resnet_v2:build_resnet18_v2',
    'resnet50_v2': 'tasks.images.resnet_v2:build_resnet50_v2',
    'simple_cnn': 'tasks.images.small_cnns:build_simple_cnn',
    'lenet': 'tasks.images.small_cnns:build_lenet',
    'cnn_dropout': 'tasks.images.emnist_models:build_cnn_dropout',
}

CIFAR10 = definitions.ClassificationTask(
    name='cifar10',
    summary='100, Dirichlet 0.1',
    data=cifar_data.CIFAR10,
    models=MODELS,
    model_help='The model to train; v2 models are those of FedOpt.',
    clients=clients.delta_sgd_clients(100, alpha=0.1),
    protocol=definitions.Protocol(
        client_batch_size=64,
        client_epochs=1,
        clients_per_round=10,
        total_rounds=2000,
    ),
    source=sources.tfds_images(
        'cifar10',
        'University of Toronto',
        'no formal licence; cite Krizhevsky 2009',
        size=170_052_171,
        url='https://www.cs.toronto.edu',
    ),
)
