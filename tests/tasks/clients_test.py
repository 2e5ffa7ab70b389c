# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `clients`."""

import types

from absl.testing import parameterized
import numpy as np

from tasks import clients as clients_lib
from tff_adaptive.data import partition


def _arguments(clients, **changes):
  values = {argument.name: argument.default for argument in clients.arguments}
  return types.SimpleNamespace(**{**values, 'num_clients': 2, **changes})


def _split(clients, num_examples=1200, seed=1, **changes):
  examples = {'x': np.arange(num_examples), 'y': np.arange(num_examples) % 10}
  return clients.split(examples, _arguments(clients, **changes), seed)


class ClientsTest(parameterized.TestCase):

  @parameterized.parameters(
      ({}, 1200, 1200, False),
      ({'num_clients': 7, 'examples_per_client': ''}, 1200, 1200, False),
      ({'partition': 'iid'}, 1200, 1200, False),
      ({'partition': 'dirichlet_with_replacement'}, 1200, 1220, True),
      ({'examples_per_client': '30', 'partition': 'iid'}, 60, 60, False),
      ({'examples_per_client': '10-20', 'partition': 'iid'}, 20, 40, False),
      (
          {
              'examples_per_client': '30',
              'partition': 'dirichlet_without_replacement',
          },
          60,
          60,
          False,
      ),
      ({'partition': 'shards', 'shards_per_client': 3}, 1200, 1200, False),
      ({'partition': 'dirichlet_per_class', 'min_size': 9}, 1200, 1200, False),
  )
  def test_number_of_examples_and_repetition(self, changes, low, high, repeats):
    found = _split(clients_lib.Partition(), **changes)
    self.assertBetween(found.total_examples, low, high)
    self.assertEqual(len(set(found.indices)) < found.total_examples, repeats)

  @parameterized.parameters(
      ({'num_clients': 1}, 500, 510, True),
      ({'num_clients': 1, 'examples_per_client': ''}, 500, 510, True),
      ({'examples_per_client': '10-20', 'alpha': 0.5}, 20, 60, True),
      ({'partition': 'dirichlet_without_replacement'}, 1000, 1000, False),
  )
  def test_clients_of_delta_sgd_repeat_examples(
      self, changes, low, high, repeats
  ):
    found = _split(clients_lib.delta_sgd_clients(2, alpha=0.1), **changes)
    self.assertBetween(found.total_examples, low, high)
    self.assertEqual(len(set(found.indices)) < found.total_examples, repeats)

  def test_more_clients_than_examples_raise(self):
    with self.assertRaisesRegex(ValueError, '`num_clients` must be at most'):
      _split(clients_lib.Partition(), num_examples=5, num_clients=6)

  @parameterized.parameters(
      (np.zeros([6], np.float32), r'float32 of shape \[\];'),
      (np.zeros([6, 2], np.int32), r'int32 of shape \[2\];'),
  )
  def test_labels_that_are_no_classes_are_for_iid(self, labels, found):
    clients = clients_lib.Partition()
    examples = {'x': np.arange(6), 'y': labels}
    with self.assertRaisesRegex(ValueError, f"^The partition 'diri.*{found}"):
      clients.split(examples, _arguments(clients), seed=1)
    arguments = _arguments(clients, partition='iid')
    self.assertEqual(clients.split(examples, arguments, 1).total_examples, 6)

  @parameterized.parameters(
      ('iid', 'alpha', 0.5),
      ('shards', 'min_size', 2),
      ('dirichlet_per_class', 'shards_per_client', 3),
      ('dirichlet_with_replacement', 'cap', True),
  )
  def test_arguments_without_effect_raise(self, scheme, name, value):
    with self.assertRaisesRegex(
        ValueError, f"`{name}` must be .* partition '{scheme}', found {value}:"
    ):
      _split(clients_lib.Partition(), partition=scheme, **{name: value})

  @parameterized.parameters(('partition', 'iid'), ('alpha', 0.5))
  def test_clients_of_the_data_are_not_split(self, name, value):
    clients = clients_lib.Partition()
    own = _split(clients)
    with self.assertRaisesRegex(ValueError, f'`{name}` must .* own clients'):
      clients.choose(own, _arguments(clients, **{name: value}), 1)
    with self.assertRaisesRegex(ValueError, 'come with .* leave out `clients`'):
      clients.choose(own, _arguments(clients), 1)

  def test_the_number_of_clients_is_an_integer_without_a_default_too(self):
    for clients in (clients_lib.Partition(), clients_lib.Partition(None)):
      (found,) = (a for a in clients.arguments if a.name == 'num_clients')
      self.assertIs(found.type, int)

  def test_default_scheme_is_that_of_the_value(self):
    found = _split(clients_lib.Partition(scheme='dirichlet_per_class'))
    np.testing.assert_array_equal(np.sort(found.indices), np.arange(1200))

  def test_clients_hold_whole_examples(self):
    clients = _split(clients_lib.Partition(), examples_per_client='30')
    self.assertEqual(clients.client_ids, ('client_000', 'client_001'))
    for client_id in clients.client_ids:
      examples = clients.examples(client_id)
      np.testing.assert_array_equal(examples['x'] % 10, examples['y'])

  def test_defaults_and_words_are_those_of_the_value(self):
    found = {
        argument.name: argument
        for argument in clients_lib.Partition(7, 0.5, noun='texts').arguments
    }
    self.assertEqual(found['num_clients'].default, 7)
    self.assertEqual(found['alpha'].default, 0.5)
    self.assertEqual(found['partition'].choices, partition.SCHEMES)
    self.assertStartsWith(found['examples_per_client'].help, 'Texts per client')

  @parameterized.parameters(None, 7)
  def test_number_of_clients_of_pachinko_is_that_of_the_value(self, number):
    (found,) = (
        argument.default
        for argument in clients_lib.PachinkoPartition(
            num_clients=number
        ).arguments
        if argument.name == 'num_clients'
    )
    self.assertEqual(found, number)

  def test_dirichlet_clients_have_no_scheme(self):
    with self.assertRaisesRegex(TypeError, 'scheme'):
      clients_lib.DirichletClients(scheme='iid')

  @parameterized.parameters(0.1, np.inf)
  def test_dirichlet_clients_hold_every_example_once(self, alpha):
    clients = clients_lib.DirichletClients()
    found = _split(clients, 300, num_clients=7, alpha=alpha)
    np.testing.assert_array_equal(np.sort(found.indices), np.arange(300))
    with self.assertRaisesRegex(ValueError, 'must be at most 5, the number'):
      _split(clients, 5, num_clients=2**40, alpha=alpha)

  def test_infinite_alpha_is_more_even_than_a_small_one(self):
    def mean_classes(alpha):
      clients = clients_lib.DirichletClients()
      found = _split(clients, 300, num_clients=10, alpha=alpha)
      return np.mean(
          [len(set(found.examples(i)['y'])) for i in found.client_ids]
      )

    self.assertGreater(mean_classes(np.inf), 8.5)
    self.assertLess(mean_classes(0.1), 6.0)
