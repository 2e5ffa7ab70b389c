# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the properties that all optimizers have, from one table of rules."""

import collections
import inspect
import math
import typing
from typing import Annotated, Literal

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive.optimizers import rules_testing
from tff_adaptive import optimizers
from tff_adaptive.optimizers import optimizer as optimizer_lib

# These wait for a round, pull to where they begin, or take steps that do not
# shrink.
_NOT_TO_THE_MINIMUM = (
    'fafed',
    'feddyn',
    'fedspeed',
    'fedmuon',
    'fedmuon_nesterov',
    'fedmuon_lmo',
    'fedpac_sophia',
    'fedlion',
    'mechanic_sgd',
    'mechanic_sgd_kept',
    'mechanic_adam',
)
# The step size of this rule is a factor of an average that begins at zero.
_OF_AVERAGES = ('momo_star',)
_WITH_RATE = [
    row
    for row in rules_testing.RULES
    if 'learning_rate' in inspect.signature(row[1]).parameters
]
# The steps of these depend on the shapes of the tensors.
_PER_TENSOR = (
    'fedadamw',
    'fedmuon',
    'fedmuon_nesterov',
    'fedmuon_lmo',
    'fedpac_soap',
)
_STRUCTURES = (
    ('scalar', np.array(2.0)),
    ('nested', collections.OrderedDict(a=np.ones([2, 3]), b=(np.ones([4]),))),
    ('empty', ()),
)


# In float32, 1e-50 is 0 and 1e39 is infinite.
_NUMBERS = (-1, -1e-3, 0, 1e-50, 1, 1.5, 1e39, math.inf, math.nan)


def _bad_values(annotation):
  """Returns values that are not of an argument's range or choices."""
  for kind in (annotation, *typing.get_args(annotation)):
    if typing.get_origin(kind) is Literal:
      return ('no such choice',)
    if typing.get_origin(kind) is Annotated:
      (allowed,) = kind.__metadata__
      kinds = int if allowed.is_whole else (int, float)
      return [
          number
          for number in _NUMBERS
          if isinstance(number, kinds) and number not in allowed
      ]
  return ()


def _to_tensors(structure, dtype):
  return tf.nest.map_structure(lambda a: tf.cast(a, dtype), structure)


def _twice(weights):
  return tf.nest.map_structure(lambda w: 2.0 * w, weights)


def _weights():
  return tf.constant([1.0, 2.0]), tf.constant(3.0)


def _take_steps(optimizer, weights, gradient_fn, num_steps=3):
  """Returns the weights after a few steps."""
  state = optimizer.initialize(rules_testing.specs(weights))
  for _ in range(num_steps):
    state, weights = rules_testing.next_step(
        optimizer, state, weights, gradient_fn
    )
  return weights


class OptimizerConformanceTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.product(
      row=rules_testing.RULES,
      structure=_STRUCTURES,
      dtype=[tf.float32, tf.float64, tf.bfloat16],
  )
  @pytest.mark.sample(100)
  def test_types_are_stable_and_loss_falls(self, row, structure, dtype):
    _, build, arguments, _ = row
    optimizer = build(**arguments)
    weights = start = _to_tensors(structure[1], dtype)
    state = tf.nest.map_structure(
        tf.convert_to_tensor, optimizer.initialize(rules_testing.specs(weights))
    )
    first_specs = rules_testing.specs(state)
    for _ in range(3):
      state, weights = rules_testing.next_step(
          optimizer, state, weights, _twice
      )
    self.assertEqual(first_specs, rules_testing.specs(state))
    self.assertEqual(rules_testing.specs(start), rules_testing.specs(weights))
    for before, after in zip(tf.nest.flatten(start), tf.nest.flatten(weights)):
      self.assertTrue(tf.reduce_all(tf.abs(after) < tf.abs(before)))

  @parameterized.named_parameters(*rules_testing.RULES)
  def test_variables_are_assigned_before_the_state_is_read(
      self, build, arguments, _
  ):
    # As in TFF's loops over variable models.
    optimizer = build(**arguments)
    variable, weights = tf.Variable([1.0, 2.0]), tf.constant([1.0, 2.0])
    state = optimizer.initialize(rules_testing.specs(weights))
    for _ in range(3):
      state, moved = rules_testing.next_step(optimizer, state, variable, _twice)
      variable.assign(moved)
      state = tf.nest.map_structure(tf.convert_to_tensor, state)
    self.assertAllEqual(variable, _take_steps(optimizer, weights, _twice))

  @parameterized.named_parameters(*rules_testing.RULES)
  def test_none_gradient_leaves_its_weight(self, build, arguments, _):
    weights = _take_steps(
        build(**arguments), _weights(), lambda w: (None, 2.0 * w[1])
    )
    self.assertAllEqual(weights[0], [1.0, 2.0])
    self.assertNotAllClose(weights[1], 3.0)

  @parameterized.named_parameters(
      row
      for row in rules_testing.RULES
      if 'weight_decay' in inspect.signature(row[1]).parameters
  )
  def test_weight_decay_leaves_weights_without_gradient(
      self, build, arguments, _
  ):
    start = [tf.ones([2, 3]), tf.ones([2])]
    used, unused = _take_steps(
        build(**{**arguments, 'weight_decay': 0.5}),
        (start, start),
        lambda w: (_twice(w[0]), [None, None]),
    )
    for before, after, still in zip(start, used, unused):
      self.assertNotAllClose(after, before)
      self.assertAllEqual(still, before)

  @parameterized.named_parameters(*rules_testing.RULES)
  def test_no_and_zero_gradients_leave_all_weights(self, build, arguments, _):
    for gradients in ((None, None), (tf.zeros([2]), tf.zeros([]))):
      weights = _take_steps(
          build(**arguments), _weights(), lambda _, found=gradients: found
      )
      self.assertAllEqual(weights[0], [1.0, 2.0])
      self.assertAllEqual(weights[1], 3.0)

  @parameterized.product(
      row=rules_testing.RULES, bad=[float('nan'), float('inf'), float('-inf')]
  )
  def test_gradient_that_is_not_finite_is_not_hidden(self, row, bad):
    # So the client is seen to fail.
    _, build, arguments, _ = row
    optimizer = build(**arguments)
    weights = (tf.constant([1.0, 2.0]), tf.constant(3.0))
    state = optimizer.initialize(rules_testing.specs(weights))
    for first in (bad, 1.0):
      state, weights = rules_testing.next_step(
          optimizer,
          state,
          weights,
          lambda w, first=first: (first + 0.0 * w[0], w[1]),
      )
      self.assertFalse(np.any(np.isfinite(weights[0])))

  @parameterized.named_parameters(*rules_testing.RULES)
  def test_indexed_slices_equal_dense_gradients(self, build, arguments, _):
    optimizer = build(**arguments)
    # One row occurs twice.
    indices = tf.constant([0, 2, 2])

    def sparse(w):
      return tf.IndexedSlices(2.0 * tf.gather(w, indices), indices, w.shape)

    def dense(w):
      return tf.convert_to_tensor(sparse(w))

    weights = tf.constant([[1.0], [2.0], [3.0]])
    results = [_take_steps(optimizer, weights, fn) for fn in (sparse, dense)]
    self.assertAllClose(*results, rtol=1e-6)
    self.assertAllEqual(results[0][1], [2.0])

  @parameterized.named_parameters(
      row for row in rules_testing.RULES if row[0] not in _PER_TENSOR
  )
  def test_steps_do_not_depend_on_how_weights_are_split(
      self, build, arguments, _
  ):
    def split(a):
      return {'a': tf.reshape(a[:2], [2, 1]), 'b': (a[2:3], a[3])}

    scale = tf.constant([3.0, 0.5, 7.0, 1.0], tf.float64)
    flat = _take_steps(
        build(**arguments), tf.ones_like(scale), lambda w: scale * w
    )
    nested = _take_steps(
        build(**arguments),
        split(tf.ones_like(scale)),
        lambda w: tf.nest.map_structure(tf.multiply, split(scale), w),
    )
    self.assertAllClose(nested, split(flat), rtol=1e-9)

  @parameterized.named_parameters(
      row for row in rules_testing.RULES if row[0] not in _NOT_TO_THE_MINIMUM
  )
  @pytest.mark.sample(12)
  def test_converges_on_a_quadratic(self, build, arguments, _):
    optimizer = build(**arguments)
    scale = tf.constant([1.0, 0.5, 2.0, 1.5, 0.8], tf.float64)
    weights = tf.constant([1.0, -2.0, 3.0, -4.0, 5.0], tf.float64)
    state = optimizer.initialize(rules_testing.specs(weights))

    @tf.function
    def step(state, weights):
      return rules_testing.next_step(
          optimizer, state, weights, lambda w: scale * w
      )

    state = tf.nest.map_structure(tf.convert_to_tensor, state)
    for _ in range(400):
      state, weights = step(state, weights)
    self.assertLess(float(tf.norm(weights)), 1e-3)

  @parameterized.named_parameters(*rules_testing.RULES)
  def test_hparams_round_trip(self, build, arguments, others):
    has_rate = 'learning_rate' in inspect.signature(build).parameters
    optimizer = build(**arguments)
    if has_rate and not others:
      others = {'learning_rate': 0.3}
    other = build(**others)
    specs = tf.TensorSpec([2], tf.float32)
    state = optimizer.initialize(specs)
    hparams = optimizer.get_hparams(state)
    self.assertEqual(
        tff.learning.optimizers.LEARNING_RATE_KEY in hparams, has_rate
    )
    unchanged = optimizer.set_hparams(state, hparams)
    self.assertEqual(list(unchanged), list(state))
    tf.nest.map_structure(self.assertAllEqual, unchanged, state)
    # With the other's hyperparameters it takes the other's steps.
    wanted = other.get_hparams(other.initialize(specs))
    state = optimizer.set_hparams(state, wanted)
    results = []
    for chosen, chosen_state in (
        (optimizer, state),
        (other, other.initialize(specs)),
    ):
      weights = tf.constant([1.0, -3.0])
      for _ in range(3):
        chosen_state, weights = rules_testing.next_step(
            chosen, chosen_state, weights, _twice
        )
      results.append(weights)
    self.assertAllEqual(*results)

  @parameterized.named_parameters(*rules_testing.RULES)
  def test_hparams_do_not_depend_on_the_weights(self, build, arguments, _):
    optimizer = build(**arguments)
    hparams = [
        optimizer.get_hparams(optimizer.initialize(specs))
        for specs in (
            tf.TensorSpec([], tf.float32),
            (tf.TensorSpec([3, 4], tf.float64), tf.TensorSpec([2], tf.float32)),
        )
    ]
    self.assertEqual(*hparams)

  @parameterized.named_parameters(*rules_testing.RULES)
  def test_gradients_of_another_structure_raise(self, build, arguments, _):
    optimizer = build(**arguments)
    weights = (tf.constant([1.0, 2.0]),)
    state = optimizer.initialize(rules_testing.specs(weights))
    extra_args = {}
    if optimizer_lib.takes_extra_args(optimizer):
      value = tf.constant(1.0)
      extra_args = dict(value=value, value_and_grad_fn=lambda at: (value, at))
    for gradients in ((weights[0], weights[0]), (tf.ones([3]),)):
      with self.assertRaisesRegex(ValueError, 'same structure'):
        optimizer.next(state, weights, gradients, **extra_args)

  @parameterized.named_parameters(*_WITH_RATE)
  def test_state_of_other_weights_raises_by_name(self, build, arguments, _):
    optimizer = build(**arguments)
    state = optimizer.initialize(tf.TensorSpec([3], tf.float32))
    if not any(map(np.ndim, tf.nest.flatten(state))):
      # A state without coordinates fits any weights.
      rules_testing.next_step(optimizer, state, tf.ones([2]), _twice)
      return
    with self.assertRaisesRegex(ValueError, r'The optimizer state `\w+` must'):
      rules_testing.next_step(optimizer, state, tf.ones([2]), _twice)

  def test_bad_arguments_are_refused_by_name(self):
    checked = []
    for kind in ('client_optimizer', 'server_optimizer'):
      for build in rules_testing.builders(kind).values():
        parameters = inspect.signature(build.func).parameters
        for name, parameter in parameters.items():
          for value in _bad_values(parameter.annotation):
            with self.assertRaisesRegex(
                ValueError, f'`{name}` must be .*, found '
            ):
              build(**{name: value})
            checked.append(name)
    self.assertGreater(len(checked), 1000)

  @parameterized.parameters(
      (optimizers.build_sps, False, '`value`.*build_fed_opt'),
      (optimizers.build_sps_max, False, '`value`.*build_fed_opt'),
      (optimizers.build_sps_smooth, False, '`value`.*build_fed_opt'),
      (optimizers.build_schedule_free_polyak_sgd, False, 'Polyak SGD sets its'),
      (optimizers.build_schedule_free_plus, False, r'ScheduleFree\+ sets its'),
      (optimizers.build_adgd, True, "previous_gradient='reuse'"),
      (optimizers.build_momo, False, 'MoMo sets its step.*`value`'),
      (optimizers.build_fedsam, True, 'FedSAM evaluates a batch again.*rho=0'),
      (optimizers.build_fafed, True, 'FAFED keeps state.*algorithms'),
      (optimizers.build_delta_sgd, True, "previous_gradient='reuse'"),
  )
  def test_a_loop_that_gives_gradients_alone_is_told_what_to_do(
      self, build, evaluates_again, message
  ):
    optimizer = build()
    self.assertEqual(optimizer.evaluates_again, evaluates_again)
    state = optimizer.initialize(tf.TensorSpec([], tf.float32))
    with self.assertRaisesRegex(ValueError, message):
      optimizer.next(state, tf.constant(1.0), tf.constant(1.0))

  @parameterized.parameters(
      (optimizers.build_adagrad_norm, {}, 'AdaGrad-Norm'),
      (
          optimizers.build_delta_sgd,
          dict(previous_gradient='reuse'),
          'Delta-SGD',
      ),
      (optimizers.build_mechanic_sgd, {}, 'Mechanic with SGD'),
  )
  def test_a_rule_that_keeps_state_needs_a_loop_with_rounds(
      self, build, arguments, title
  ):
    optimizer = build(carry_state=True, **arguments)
    state = optimizer.initialize(tf.TensorSpec([], tf.float32))
    with self.assertRaisesRegex(ValueError, f'{title} keeps state between'):
      optimizer.next(state, tf.constant(1.0), tf.constant(1.0))

  @parameterized.named_parameters(*_WITH_RATE)
  def test_integer_rate_is_a_float_in_the_state(self, build, *_):
    state = build(learning_rate=1).initialize(tf.TensorSpec([], tf.float32))
    rate = tf.convert_to_tensor(state['learning_rate'])
    self.assertEqual(rate.dtype, tf.float32)

  @parameterized.named_parameters(
      row for row in rules_testing.RULES if row[0] not in _OF_AVERAGES
  )
  def test_a_reported_step_size_is_the_rate_or_what_is_moved(
      self, build, arguments, _
  ):
    optimizer = build(**arguments)
    weights = tf.constant([1.0])
    state = optimizer.initialize(rules_testing.specs(weights))
    state, moved = rules_testing.next_step(optimizer, state, weights, _twice)
    report = optimizer_lib.step_report(optimizer, state)
    if 'step_size' not in report:  # It has one for each coordinate.
      self.assertTrue(optimizer_lib.takes_extra_args(optimizer))
      return
    self.assertEqual(report['step_size'].dtype, tf.float32)
    (step_size,) = ((weights - moved) / _twice(weights)).numpy()
    found = float(report['step_size'])
    rates = [arguments.get('learning_rate', step_size), step_size]
    self.assertLess(min(abs(found - rate) for rate in rates), 1e-6)
