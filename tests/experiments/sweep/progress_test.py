# Copyright 2026 The tff_adaptive Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""Tests of what a sweep shows."""

import io
import pathlib
import tempfile

from absl.testing import parameterized

from experiments.sweep import progress as progress_lib
from tests.experiments.sweep import sweep_testing


class _Terminal(io.StringIO):

  def isatty(self):
    return True


class ProgressTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    folder = self.enter_context(tempfile.TemporaryDirectory())
    self.trials = sweep_testing.build_trials(
        pathlib.Path(folder), ('1', '2', '3', '4')
    )
    self.seconds = 0.0

  def _show(self, stream):
    return progress_lib.Progress(self.trials, 5, stream, lambda: self.seconds)

  def _train(self, trial, num_rounds, total_rounds=10):
    trial.folder.mkdir(parents=True, exist_ok=True)
    (trial.folder / 'hparams.json').write_text(
        f'{{"total_rounds": {total_rounds}}}'
    )
    rows = [f'{n},0.5,\n' for n in range(1, num_rounds + 1)]
    (trial.folder / 'metrics.csv').write_text(
        'round_num,train/accuracy,evaluation/accuracy\n' + ''.join(rows)
    )

  def test_lines_where_there_is_no_terminal(self):
    stream = io.StringIO()
    shown = self._show(stream)
    a, b, c, _ = self.trials
    shown.started(a)
    shown.started(b)
    self.seconds = 30
    b.log.parent.mkdir(parents=True)
    b.log.write_text('begin\nerror: it is two.\n\n')
    shown.ended(b, 2)
    shown.started(c)
    shown.tick()
    self._train(a, 5)
    self.seconds = 60
    shown.tick()
    shown.tick()
    self.seconds = 90
    shown.ended(a, 0)
    shown.close()
    rate = 'rates/client_learning_rate'
    self.assertEqual(
        stream.getvalue().splitlines(),
        [
            f'start {rate}=1/seed_0',
            f'start {rate}=2/seed_0',
            f'failed {rate}=2/seed_0 after 30 s with 2: error: it is two. '
            f'({b.log})',
            f'start {rate}=3/seed_0',
            # One and a half of four trials took a minute.
            '5 finished, 2 running, 1 failed, 1 waiting; 1 min 0 s so '
            'far, 1 min 40 s to go',
            f'end   {rate}=1/seed_0 after 1 min 30 s',
        ],
    )

  def test_a_terminal_is_redrawn_in_place(self):
    stream = _Terminal()
    shown = self._show(stream)
    shown.started(self.trials[0])
    self.assertEqual(stream.getvalue(), '')
    self._train(self.trials[0], 3)
    self.seconds = 2
    shown.tick()
    first = stream.getvalue()
    self.assertEqual(
        first.splitlines()[0],
        '5 finished, 1 running, 0 failed, 3 waiting; 2 s so far, 25 s to go'[
            :79
        ],
    )
    self.assertIn('round 3 of 10, train/accuracy 0.5000', first)
    self.assertNotIn('\x1b', first)
    self.seconds = 4
    shown.tick()
    second = stream.getvalue()[len(first) :]
    self.assertStartsWith(second, '\x1b[2F\x1b[J5 finished')
    shown.close()
    self.assertEndsWith(stream.getvalue(), '\x1b[2F\x1b[J')

  def test_rounds_of_an_earlier_call_are_not_of_this_one(self):
    stream = io.StringIO()
    a, b, c, _ = self.trials
    self._train(a, 4, total_rounds=8)
    self._train(b, 4, total_rounds=8)
    shown = self._show(stream)
    for trial in (a, b, c):
      shown.started(trial)
    self.seconds = 30
    shown.ended(a, 0)
    self._train(b, 6, total_rounds=8)
    self._train(c, 2, total_rounds=8)
    self.seconds = 60
    shown.tick()
    # Of 1/2 + 1/2 + 1 + 1 trials there are 1/2 + 1/4 + 1/4 done.
    self.assertIn('1 min 0 s so far, 2 min 0 s to go', stream.getvalue())

  def test_more_rounds_than_before_are_still_to_go(self):
    stream = io.StringIO()
    folder = self.trials[0].home.parent
    self.trials = sweep_testing.build_trials(folder, ('1',), total_rounds='20')
    self._train(self.trials[0], 10, total_rounds=10)
    shown = self._show(stream)
    shown.started(self.trials[0])
    self._train(self.trials[0], 15, total_rounds=20)
    self.seconds = 60
    shown.tick()
    self.assertIn('1 min 0 s so far, 1 min 0 s to go', stream.getvalue())

  @parameterized.named_parameters(
      ('nothing', None, (0.0, 'starting')),
      ('no_round', 0, (0.0, 'starting')),
      ('rounds', 4, (0.4, 'round 4 of 10, train/accuracy 0.5000')),
  )
  def test_glance(self, num_rounds, expected):
    if num_rounds is not None:
      self._train(self.trials[0], num_rounds)
    self.assertEqual(progress_lib.glance(self.trials[0]), expected)

  def test_glance_prefers_the_evaluation(self):
    trial = self.trials[0]
    self._train(trial, 1)
    with open(trial.folder / 'metrics.csv', 'a') as file:
      file.write('2,0.6,0.75\n3,0.7,\n')
    self.assertEqual(
        progress_lib.glance(trial),
        (0.3, 'round 3 of 10, evaluation/accuracy 0.7500'),
    )
