# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""All tasks by name, and the data sets that they use.

This module does not import TensorFlow.
"""

from tasks import ag_news
from tasks import cifar10
from tasks import cifar100
from tasks import dbpedia
from tasks import definitions
from tasks import digits
from tasks import emnist
from tasks import fashion_mnist
from tasks import mnist
from tasks import shakespeare
from tasks import stackoverflow

TASKS: dict[str, definitions.TaskDefinition] = {
    task.name: task
    for task in (
        digits.DIGITS,
        mnist.MNIST,
        fashion_mnist.FASHION_MNIST,
        emnist.EMNIST_CR,
        emnist.EMNIST_AE,
        cifar10.CIFAR10,
        cifar100.CIFAR100,
        shakespeare.SHAKESPEARE,
        stackoverflow.STACKOVERFLOW_NWP,
        stackoverflow.STACKOVERFLOW_LR,
        ag_news.AG_NEWS,
        dbpedia.DBPEDIA,
    )
}

# Several tasks may share a data set.
DATASETS = {
    task.source.name: task.source
    for task in TASKS.values()
    if task.source is not None
}
