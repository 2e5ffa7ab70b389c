# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""MNIST, by default split among clients as in the Delta-SGD experiments.

References:
  Kim et al., Adaptive Federated Learning with Auto-Tuned Clients, ICLR 2024,
  https://arxiv.org/abs/2306.11201, Section 4 and its published code. That code
  trains on 450 of a client's 500 images, this task on all of them.
"""

from tasks import clients
from tasks import definitions
from tasks import sources
from tasks.images import mnist_data

MNIST = definitions.ClassificationTask(
    name='mnist',
    summary='100, Dirichlet 0.1',
    data=mnist_data.MNIST,
    models={
        'cnn': 'tasks.images.mnist_models:build_cnn',
        'fedavg_cnn': 'tasks.images.mnist_models:build_fedavg_cnn',
        'logistic': 'tasks.images.mnist_models:build_logistic',
        'mlp': 'tasks.images.mnist_models:build_mlp',
    },
    clients=clients.delta_sgd_clients(100, alpha=0.1),
    protocol=definitions.Protocol(
        client_batch_size=64,
        client_epochs=1,
        clients_per_round=10,
        total_rounds=500,
    ),
    source=sources.tfds_images(
        'mnist',
        'LeCun and Cortes',
        'usually given as CC BY-SA 3.0',
        size=11_594_722,
        url='https://storage.googleapis.com',
    ),
)
