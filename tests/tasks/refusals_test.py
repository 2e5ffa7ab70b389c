# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that bad arguments and examples are named: a row is an error."""

import copy

from absl.testing import parameterized
import numpy as np

from tasks import catalogue
from tasks import definitions
from tests import folder_testing

# A task, its arguments, and the one that is refused.
_ARGUMENTS = (
    ('mnist', {'alpha': 0.0}, 'alpha'),
    ('mnist', {'num_clients': 0}, 'num_clients'),
    ('mnist', {'num_clients': 5}, 'clients_per_round'),
    ('mnist', {'examples_per_client': 'x'}, 'examples_per_client'),
    (
        'mnist',
        {'partition': 'shards', 'examples_per_client': '5'},
        'examples_per_client',
    ),
    ('mnist', {'partition': 'dirichlet_per_class', 'min_size': 99}, 'min_size'),
    ('cifar10', {'model_id': 'simple_cnn', 'norm': 'batch'}, 'norm'),
    ('cifar10', {'model_id': 'resnet18_v2', 'norm': 'batch'}, 'norm'),
    ('cifar10', {'augmentation': 'mixup'}, 'augmentation'),
    ('cifar100', {'partition': 'natural'}, 'partition'),
    ('cifar100', {'num_clients': 4, 'fine_alpha': 0.0}, 'fine_alpha'),
    ('stackoverflow_nwp', {'vocab_size': 10**6}, 'vocab_size'),
    ('stackoverflow_lr', {'tag_vocab_size': 10**6}, 'tag_vocab_size'),
    ('stackoverflow_lr', {'model_id': 'logistic', 'max_words': 8}, 'max_words'),
    ('ag_news', {'vocab_size': 10**6}, 'vocab_size'),
    ('ag_news', {'vocab_size': 50, 'num_clients': 4}, 'clients_per_round'),
    ('ag_news', {'vocab_size': 50, 'max_length': 4}, 'max_length'),
    ('ag_news', {'vocab_size': 50, 'pretrained_dir': 'x'}, 'pretrained_dir'),
)
_GOOD = {
    'mnist': {
        'x': np.zeros([3, 28, 28], np.uint8),
        'y': np.arange(3, dtype=np.int32),
    },
    'cifar10': {
        'image': np.zeros([3, 32, 32, 3], np.uint8),
        'label': np.arange(3, dtype=np.int32),
    },
    'emnist_cr': {
        'label': np.arange(3, dtype=np.int32),
        'pixels': np.zeros([3, 28, 28], np.float32),
    },
    'shakespeare': {'snippets': ['To be', 'or not to be']},
    'ag_news': {'text': ['a b c', 'd e'], 'label': [0, 3]},
}
_SMALL = {
    'mnist': {'model_id': 'logistic'},
    'cifar10': {'model_id': 'simple_cnn'},
    'emnist_cr': {'model_id': '2nn'},
    'shakespeare': {'model_id': 'small_lstm', 'sequence_length': 6},
    'ag_news': {'model_id': 'bag_of_words', 'vocab_size': 6, 'max_length': 5},
}
# A task, and the feature that is not as `_GOOD` has it; None if it is missing.
_FEATURES = (
    ('mnist', 'x', np.zeros([3, 8, 8], np.uint8)),
    ('mnist', 'x', np.full([3, 28, 28], 0.5, np.float32)),
    ('cifar10', 'image', np.zeros([3, 8, 8, 3], np.uint8)),
    ('cifar10', 'image', np.zeros([3, 32, 32, 3], np.float32)),
    ('cifar10', 'image', None),
    ('emnist_cr', 'pixels', np.zeros([3, 784], np.float32)),
    ('emnist_cr', 'label', np.array([0.5, 1, 2])),
    ('emnist_cr', 'label', None),
    ('shakespeare', 'snippets', [1.5, 2.5]),
    ('shakespeare', 'snippets', [['x'], ['y']]),
    ('ag_news', 'label', [0, 4]),
    ('ag_news', 'label', [0, -1]),
    ('ag_news', 'label', [0.5, 1]),
    ('ag_news', 'label', None),
    ('ag_news', 'text', [3, 4]),
    ('ag_news', 'text', [['a b', 'c'], ['d', 'e']]),
)


class RefusalsTest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.folder = folder_testing.new(cls)
    for name in {name for name, *_ in _ARGUMENTS}:
      catalogue.TASKS[name].write_synthetic_data(cls.folder)

  @parameterized.parameters(*_ARGUMENTS)
  def test_argument(self, task, arguments, name):
    with self.assertRaisesRegex(ValueError, f'`{name}`') as caught:
      catalogue.TASKS[task].create(self.folder, **arguments)
    self.assertNotIn('\n', str(caught.exception))

  @parameterized.parameters(*_FEATURES)
  def test_feature_of_the_callers_examples(self, task, feature, value):
    good = _GOOD[task]
    bad = copy.copy(good)
    del bad[feature]
    if value is not None:
      bad[feature] = value
    for train, central_test in ((bad, good), (good, bad)):
      with self.assertRaisesRegex(ValueError, feature) as caught:
        catalogue.TASKS[task].create_from_data(
            {'ann': train},
            central_test,
            protocol=definitions.Protocol(2, 1, 1, 1),
            **_SMALL[task],
        )
      self.assertNotIn('\n', str(caught.exception))
