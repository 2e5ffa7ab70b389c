# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fashion-MNIST, with the models, scaling and clients of MNIST.

Pixels are scaled by MNIST's mean and standard deviation, as in the Delta-SGD
experiments.

References:
  Xiao et al., Fashion-MNIST: a Novel Image Dataset for Benchmarking Machine
  Learning Algorithms, 2017, https://arxiv.org/abs/1708.07747.
"""

import attrs

from tasks import mnist
from tasks import sources
from tasks.images import mnist_data

FASHION_MNIST = attrs.evolve(
    mnist.MNIST,
    name='fashion_mnist',
    data=mnist_data.FASHION_MNIST,
    protocol=attrs.evolve(mnist.MNIST.protocol, total_rounds=1000),
    source=sources.tfds_images(
        'fashion_mnist',
        'Zalando Research',
        'MIT',
        size=30_878_645,
        url='http://fashion-mnist.s3-website.eu-central-1.amazonaws.com',
    ),
)
