# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what a sweep tries."""

from absl.testing import parameterized

from experiments import hparams
from experiments.sweep import search_spaces

_RATE = 'client_learning_rate'
_LOG_UNIFORM = f'{_RATE}=log_uniform(1e-3,1)'


def _draw(text=_LOG_UNIFORM, num_trials=6, search_seed=0):
  return search_spaces.draw(
      text, num_trials=num_trials, search_seed=search_seed
  )[1]


class GridsTest(parameterized.TestCase):

  def test_values_stay_as_given(self):
    self.assertEqual(
        search_spaces.read_grid('client_optimizer=sgd, adam'),
        ('client_optimizer', ['sgd', 'adam']),
    )

  @parameterized.named_parameters(
      (
          'fedopt_server_rates',
          '-3:1:0.5',
          [
              '0.001',
              '0.00316228',
              '0.01',
              '0.0316228',
              '0.1',
              '0.316228',
              '1',
              '3.16228',
              '10',
          ],
      ),
      ('end_between_steps', '-1:0.9:1', ['0.1', '1']),
      ('tenths_add_up', '0:0.3:0.1', ['1', '1.25893', '1.58489', '1.99526']),
      ('one_value', '-5:-5:1', ['1e-05']),
  )
  def test_log_grid_is_powers_of_ten(self, text, expected):
    self.assertEqual(
        search_spaces.read_log_grid(f'{_RATE}={text}'), (_RATE, expected)
    )

  def test_every_combination_is_tried(self):
    self.assertEqual(
        search_spaces.build_assignments(grids=['a=1,2'], log_grids=['b=0:1:1']),
        [
            (('a', '1'), ('b', '1')),
            (('a', '1'), ('b', '10')),
            (('a', '2'), ('b', '1')),
            (('a', '2'), ('b', '10')),
        ],
    )


class DrawsTest(parameterized.TestCase):

  @parameterized.named_parameters(
      ('uniform', 'uniform(2,5)', 2, 5),
      ('log_uniform', 'log_uniform(1e-3,1)', 1e-3, 1),
  )
  def test_draws_lie_in_the_interval(self, text, low, high):
    values = [float(value) for value in _draw(f'{_RATE}={text}', 200)]
    self.assertBetween(min(values), low, low * 1.5)
    self.assertBetween(max(values), high * 0.9, high)

  def test_log_uniform_has_as_many_draws_in_every_decade(self):
    values = [float(value) for value in _draw(num_trials=600)]
    for low in (1e-3, 1e-2, 1e-1):
      in_decade = [value for value in values if low <= value < 10 * low]
      self.assertBetween(len(in_decade), 160, 240)

  def test_choice_draws_each_of_the_values(self):
    self.assertEqual(set(_draw('x=choice(a,b,c)', 50)), {'a', 'b', 'c'})

  def test_draws_are_a_function_of_the_seed(self):
    self.assertEqual(_draw(), _draw())
    self.assertNotEqual(_draw(), _draw(search_seed=1))

  def test_more_trials_leave_the_first_ones(self):
    self.assertEqual(_draw(num_trials=9)[:6], _draw(num_trials=6))

  def test_another_flag_leaves_the_draws(self):
    both = search_spaces.build_assignments(
        randoms=['server_learning_rate=uniform(0,1)', _LOG_UNIFORM],
        num_trials=6,
    )
    self.assertEqual([dict(found)[_RATE] for found in both], _draw())
    rates = [dict(found)['server_learning_rate'] for found in both]
    self.assertNotEqual(rates, _draw(f'{_RATE}=uniform(0,1)'))

  def test_draws_meet_every_combination_of_the_grids(self):
    found = search_spaces.build_assignments(
        grids=['a=1,2'], randoms=[_LOG_UNIFORM], num_trials=3
    )
    values = _draw(num_trials=3)
    self.assertEqual(
        found, [(('a', a), (_RATE, value)) for a in '12' for value in values]
    )

  def test_the_same_draw_is_tried_once(self):
    found = search_spaces.build_assignments(
        randoms=['x=choice(a,b)'], num_trials=20
    )
    self.assertCountEqual(found, [(('x', 'a'),), (('x', 'b'),)])


class ErrorsTest(parameterized.TestCase):

  @parameterized.named_parameters(
      ('no_values', {'grids': ['rate']}, '--grid takes FLAG=VALUES'),
      ('empty_value', {'grids': ['rate=1,,2']}, '--grid=rate takes distinct'),
      ('double_value', {'grids': ['rate=1,1']}, "values, found '1,1'"),
      ('two_exponents', {'log_grids': ['rate=-3:1']}, 'from:to:step, found'),
      ('no_exponent', {'log_grids': ['rate=a:1:1']}, 'from:to:step, found'),
      ('no_step', {'log_grids': ['rate=0:1:0']}, 'step > 0'),
      ('downwards', {'log_grids': ['rate=1:0:1']}, 'from <= to'),
      ('beyond_floats', {'log_grids': ['rate=0:400:100']}, 'up to 308'),
      ('infinite', {'log_grids': ['rate=0:inf:1']}, 'from:to:step'),
      ('distribution', {'randoms': ['x=normal(0,1)']}, 'log_uniform.*found'),
      ('no_brackets', {'randoms': ['x=uniform']}, 'takes log_uniform'),
      ('one_end', {'randoms': ['x=uniform(1)']}, r'uniform\(NUMBER,NUMBER\)'),
      (
          'log_of_zero',
          {'randoms': ['x=log_uniform(0,1)']},
          'lower bound above 0',
      ),
      ('empty_interval', {'randoms': ['x=uniform(2,2)']}, 'larger upper bound'),
      ('twice', {'grids': ['x=1'], 'log_grids': ['x=0:1:1']}, '--x is swept'),
  )
  def test_is_refused(self, spaces, sentence):
    with self.assertRaisesRegex(hparams.HparamError, sentence):
      search_spaces.build_assignments(**spaces)
