# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that any set of flags ends in a run or in a sentence."""

import math
import pathlib
import tempfile

from absl import flags
from absl.testing import parameterized
import hypothesis
import numpy as np
import pytest

from experiments import command_line
from tests import folder_testing
from tests.experiments import flag_set_testing
from tests.experiments.train import trainer_testing
from tests.tff_adaptive import fuzz_testing
from tests.tff_adaptive import property_testing  # noqa: F401
from tests.tff_adaptive import testing

_CLEAN = (flags.Error, command_line.UserError, command_line.EnvironmentalError)
_SEEDS = range(2)
_RUNS_OF_A_SEED = 40
_NUM_WEIGHTS = {'logistic': 650, 'cnn': 23_946}


def _examples(*lines):
  """Returns flags that once ended in a traceback or hung; they come first."""

  def add(test):
    for line in lines:
      test = hypothesis.example(tuple(line.split()))(test)
    return test

  return add


# Mime exchanges twice in a round, which only TFF's own runtime can do.
@pytest.mark.filterwarnings("ignore:TFF's native runtime takes over")
class FuzzedFlagsTest(parameterized.TestCase):

  def _check(self, arguments):
    """Trains with flags, and fails unless it ends as it should."""
    with tempfile.TemporaryDirectory() as folder:
      try:
        with fuzz_testing.watched():
          result, _ = trainer_testing.train_as_told(
              pathlib.Path(folder), *flag_set_testing.SMALL, *arguments
          )
      except _CLEAN as error:
        self.assertEqual(fuzz_testing.find_fault(str(error)), '', str(error))
        return
      (metrics,) = pathlib.Path(folder).rglob('metrics.csv')
      rows = folder_testing.read_rows(metrics)
    self.assertLen(rows, result.round_num)
    for row in rows:
      self._check_row(row)
    weights = testing.trainable(result.state)
    model = 'cnn' if '--digits_model=cnn' in arguments else 'logistic'
    self.assertEqual(sum(w.size for w in weights), _NUM_WEIGHTS[model])
    self.assertEqual(weights[-1].shape, (10,))
    for w in weights:
      self.assertTrue(np.isfinite(w).all())

  def _check_row(self, row):
    """Asserts that the loss is finite, unless no client counts."""
    num_clients = int(row['clients/num_clients'])
    num_rejected = int(row['clients/num_rejected'])
    self.assertBetween(num_rejected, 0, num_clients)
    if num_rejected < num_clients:
      self.assertTrue(math.isfinite(float(row['clients/loss'])), row)
      self.assertGreater(int(row['clients/num_examples']), 0)
    else:
      self.assertEqual(int(row['clients/num_examples']), 0)

  @_examples(
      '--seed=9223372036854775808',
      '--digits_alpha=1e-45',
      '--digits_num_clients=1073741824',
      '--weights_average_rounds=9223372036854775808',
      '--client_optimizer=armijo --armijo_max_trials=9223372036854775808',
      '--client_schedule=exp_decay --client_schedule_rounds_per_decay=1'
      + 30 * '0',
      '--server_schedule=table --server_schedule_table=0:1e300',
      '--server_schedule=table --server_schedule_table=0:1,2147483648:1',
      '--algorithm=fedli_ls --line_search_step_scale=1e300',
      '--max_client_update_norm=1e300',
      '--client_clip_norm=1e300',
      '--server_optimizer=fedadam --fedadam_epsilon=1e38',
      '--client_weighting=uniform --dp_clip_norm=1 --dp_noise_multiplier=1e300',
      '--client_weighting=uniform --dp_clip_norm=1 --dp_noise_multiplier=1'
      ' --dp_payload_clip_norms=control:1e300',
  )
  @hypothesis.given(flag_set_testing.flag_sets(min_extremes=2))
  @hypothesis.settings(
      max_examples=3,
      phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
  )
  def test_extreme_values_end_in_a_run_or_in_a_sentence(self, arguments):
    self._check(arguments)

  @parameterized.parameters(*_SEEDS)
  @pytest.mark.slow
  def test_any_flags_end_in_a_run_or_in_a_sentence(self, seed):
    # Failing flags are shown as drawn: shrinking them takes hours.
    @hypothesis.seed(seed)
    @hypothesis.given(flag_set_testing.flag_sets())
    @hypothesis.settings(
        max_examples=_RUNS_OF_A_SEED, phases=[hypothesis.Phase.generate]
    )
    def check(arguments):
      self._check(arguments)

    check()
