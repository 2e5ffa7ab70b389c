# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the report from machines with and without a GPU."""

import io
import json
import pathlib
import sys
import tempfile
from unittest import mock

from absl.testing import parameterized
import pytest

from experiments import command_line
from experiments import published
from experiments.benchmark import gpu as binary
from experiments.benchmark import gpu_page as page
from experiments.benchmark import gpu_parts as parts_lib
from experiments.sweep import processes
from tests.experiments import binary_testing
from tff_adaptive import _files

_GPU = 'GPUs                         /physical_device:GPU:0'


def _print(*lines, code=0):
  """Returns a program that prints lines."""
  program = ''.join(f'print({line!r}); ' for line in lines) + f'exit({code})'
  return (sys.executable, '-c', program)


def _write(path, text):
  """Returns a program that writes a file."""
  program = f'open({str(path)!r}, "w").write({text!r})'
  return (sys.executable, '-c', program)


def _line(workload, median):
  times = dict.fromkeys(('min', 'max', 'peak_rss_mb'), 1.0)
  line = {
      'peer': 'tff_adaptive',
      'workload': workload,
      'clients_per_round': 1000,
      'sec_per_round_median': median,
      'first_round': 10 * median,
      **times,
  }
  return json.dumps(line) + '\n'


class RatioTest(parameterized.TestCase):

  @parameterized.parameters(
      (0.043, '0.043'), (2.94, '2.9'), (64.2, '64'), (123.4, '123')
  )
  def test_ratios_have_no_exponent(self, ratio, text):
    self.assertEqual(page._format_ratio(ratio), text)


class ReportTestCase(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    folder = self.enter_context(tempfile.TemporaryDirectory())
    self.folder = pathlib.Path(folder).resolve() / 'report'
    self.report = parts_lib.Report(self.folder)
    self.enter_context(
        mock.patch.object(
            processes, 'available_cores', return_value=[*range(8)]
        )
    )


class BinaryTest(ReportTestCase):
  """The whole report, of parts that take no time."""

  def _call(self, parts, doctor='GPUs   none', others=(), out=None):
    """Returns what is printed, and the page."""
    machine = [parts_lib.Part('doctor', _print(doctor)), *others]
    with (
        mock.patch.object(
            parts_lib, 'list_machine_parts', return_value=machine
        ),
        mock.patch.object(parts_lib, 'list_parts', return_value=parts),
    ):
      self.report.temporary.mkdir(parents=True, exist_ok=True)
      out = binary_testing.call(binary, f'--output_dir={self.folder}', out=out)
    return out, (self.folder / 'report.md').read_text(encoding='utf-8')

  def test_numbers_of_a_gpu(self):
    times = {'CPU_1': 0.5, 'CPU_8': 0.25, 'GPU_1': 0.1}
    parts = [
        parts_lib.Part(
            f'ragged.{setup}',
            _write(
                self.report.path(f'ragged.{setup}', '.jsonl'),
                _line('ragged', seconds),
            ),
        )
        for setup, seconds in times.items()
    ]
    raised = 'c quadratic - 2e-05 FAIL (ValueError: no kernel)'
    parts += [
        parts_lib.Part(
            'goldens',
            _print('a FAIL', 'b ok', raised, '1 passed, 2 failed'),
        ),
        parts_lib.Part(
            'flute_mnist',
            _write(
                self.report.path('flute_mnist', '.csv'),
                'round_num,seconds\n1,50\n2,9\n3,1\n4,2\n5,3\n',
            ),
        ),
    ]
    out, page = self._call(parts, doctor=_GPU)
    self.assertIn('\n/physical_device:GPU:0\n', out)
    self.assertRegex(out, r'\n\[1/5\] ragged.CPU_1  \d+ s\n')
    self.assertStartsWith(page, '# GPU report\n')
    self.assertIn('6 of 6 parts succeeded', page)
    self.assertIn('TensorFlow sees /physical_device:GPU:0.', page)
    self.assertIn(
        '| workload | clients | CPU, 1 at once | CPU, 8 at once | GPU, 1 at '
        'once | GPU, 4 at once | best CPU / best GPU |',
        page,
    )
    self.assertIn('| `ragged` | 1,000 | 0.5 | 0.25 | 0.1 | - | 2.5 |', page)
    self.assertIn('| `ragged` | 1,000 | 5 | 2.5 | 1 | - | 2.5 |', page)
    self.assertIn('| `goldens.json` | 1 passed, 2 failed |', page)
    self.assertIn(f'```\na FAIL\n{raised}\n```', page)
    # Two seconds for each of 100 rounds.
    self.assertIn('| `flute_mnist` | 2 | 3 min 20 s | - | 1 min 35 s |', page)
    self.assertNotIn('What failed', page)
    self.assertFalse(self.report.temporary.exists())
    self.assertIn('best CPU / best GPU', page)

  def test_a_part_that_fails_is_on_the_page_and_the_others_run(self):
    parts = [
        parts_lib.Part('bad', _print('before', 'out of memory', code=3)),
        parts_lib.Part('good', _print('fine')),
    ]
    out = io.StringIO()
    with self.assertRaisesRegex(
        command_line.EnvironmentalError, '^1 parts failed, .*page: bad$'
    ):
      self._call(parts, out=out)
    page = (self.folder / 'report.md').read_text(encoding='utf-8')
    self.assertStartsWith(page, '# GPU report: dry run on the CPU\n')
    self.assertIn('2 of 3 parts succeeded', page)
    self.assertIn('No GPU found', page)
    self.assertNotIn('docs/guide/gpu.md', out.getvalue())
    self.assertIn('`bad`: exit code 3: out of memory', page)
    self.assertRegex(page, r'```\n\$ .*\nbefore\nout of memory\n```')
    self.assertEqual(self.report.read('good'), 'fine')

  def test_a_driver_without_libraries(self):
    driver = parts_lib.Part('nvidia_smi', _print('H100, driver 550'))
    out, page = self._call([], others=[driver])
    self.assertIn('TensorFlow sees no GPU: docs/guide/gpu.md', out)
    self.assertIn('```\nH100, driver 550\n```', page)

  def test_a_driver_that_does_not_answer_is_the_failure(self):
    driver = parts_lib.Part('nvidia_smi', _print('no answer', code=9))
    out = io.StringIO()
    with self.assertRaisesRegex(command_line.EnvironmentalError, 'nvidia_smi$'):
      self._call([], others=[driver], out=out)
    self.assertNotIn('docs/guide/gpu.md', out.getvalue())

  def test_a_protocol_keeps_the_times_of_the_workload_of_its_name(self):
    times = self.report.path('ragged.CPU_1', '.jsonl')
    parts = [
        parts_lib.Part('ragged.CPU_1', _write(times, _line('ragged', 0.5))),
        parts_lib.Part('ragged', _print('fine')),
    ]
    _, page = self._call(parts)
    self.assertIn('| `ragged` | 1,000 | 0.5 |', page)

  def test_the_same_command_runs_what_failed_or_is_new(self):
    count = self.folder / 'count'
    note = f'open({str(count)!r}, "a").write'
    add = lambda text: (sys.executable, '-c', f'{note}({text!r})')
    fail = (sys.executable, '-c', f'{note}("f"); exit(1)')
    good, bad = parts_lib.Part('good', add('g')), parts_lib.Part('bad', fail)
    with self.assertRaises(command_line.EnvironmentalError):
      self._call([good, bad])
    out, page = self._call([good, bad._replace(command=add('b'))])
    self.assertEqual(count.read_text(), 'gfb')
    self.assertIn('[1/2] good before: ', out)
    self.assertIn('3 of 3 parts succeeded', page)
    self._call([good._replace(command=add('h'))])
    self.assertEqual(count.read_text(), 'gfbh')

  def test_a_second_call_at_the_same_time_is_refused(self):
    with _files.locked(self.folder):
      with self.assertRaisesRegex(command_line.EnvironmentalError, 'in use'):
        self._call([])

  def test_a_damaged_file_of_results_is_one_sentence(self):
    self.folder.mkdir()
    (self.folder / 'parts.json').write_text('{')
    with self.assertRaisesRegex(
        command_line.UserError, 'parts.json is damaged .*; delete it'
    ):
      self._call([])

  def test_a_part_that_hangs_is_stopped(self):
    hang = (sys.executable, '-c', 'import time; time.sleep(1000)')
    with mock.patch.object(parts_lib, '_LIMIT_SECONDS', 0.5):
      with self.assertRaises(command_line.EnvironmentalError):
        self._call([parts_lib.Part('late', hang)])
    page = (self.folder / 'report.md').read_text(encoding='utf-8')
    self.assertIn('`late`: stopped after 0 seconds', page)

  @pytest.mark.slow
  def test_a_workload_and_a_protocol_are_measured(self):
    with (
        mock.patch.object(parts_lib, 'WORKLOADS', ('tiny_many',)),
        mock.patch.object(parts_lib, 'GOLDENS', ('goldens',)),
        mock.patch.object(
            parts_lib, 'read_published_times', lambda: {'flute_mnist': '1 min'}
        ),
        mock.patch.object(processes, 'available_cores', return_value=[0]),
        mock.patch.object(
            parts_lib, '_DRY', parts_lib._DRY._replace(goldens=1)
        ),
    ):
      out = binary_testing.call(binary, f'--output_dir={self.folder}')
    self.assertIn('no GPU found: dry run on the CPU\n', out)
    page = (self.folder / 'report.md').read_text(encoding='utf-8')
    self.assertIn('5 of 5 parts succeeded', page)
    self.assertIn('| `goldens.json` | 1 passed, 0 failed |', page)
    number = r'[\d.e-]+'
    self.assertRegex(page, rf'\| `tiny_many` \| 100 \| {number} \| {number} \|')
    self.assertRegex(
        page, rf'\| `flute_mnist` \| {number} \| .* s \| {number} % \| 1 min \|'
    )


class PartsTest(ReportTestCase):

  def test_every_workload_on_every_device(self):
    parts = list(parts_lib.list_parts(self.report, True, 'somewhere'))
    names = [part.name for part in parts]
    self.assertLen(set(names), len(names))
    for workload in parts_lib.WORKLOADS:
      timed = [p for p in parts if p.name.startswith(f'{workload}.')]
      self.assertEqual(
          [
              (
                  'CUDA_VISIBLE_DEVICES' in p.environment,
                  p.command[5],
                  p.num_cores,
              )
              for p in timed
          ],
          [
              (True, '--num_parallel_clients=1', None),
              (True, '--num_parallel_clients=8', 8),
              (False, '--num_parallel_clients=1', None),
              (False, '--num_parallel_clients=4', 4),
          ],
      )
    trained = [p for p in parts if p.command[2] == 'experiments.train']
    presets = parts_lib.PROTOCOLS.glob('*.flags')
    self.assertCountEqual([p.name for p in trained], [p.stem for p in presets])
    for part in trained:
      self.assertIn('--data_dir=somewhere', part.command)
      self.assertEmpty(part.environment)

  def test_a_dry_run_has_the_cpu_and_synthetic_data(self):
    parts = list(parts_lib.list_parts(self.report, False, None))
    self.assertEmpty([part for part in parts if '.GPU' in part.name])
    self.assertIn('--use_synthetic_data', parts[-1].command)

  @parameterized.parameters((True, 30), (False, 4))
  def test_samples_of_the_goldens_are_from_all_of_a_file(self, has_gpu, most):
    parts = parts_lib.list_parts(self.report, has_gpu, None)
    for name, part in zip(parts_lib.GOLDENS, parts):
      path = part.command[-1].removeprefix('--goldens=')
      sample, whole = (
          json.loads(pathlib.Path(each).read_text(encoding='utf-8'))
          for each in (path, published.ROOT / f'tests/goldens/{name}.json')
      )
      chosen, runs = sample.pop('runs'), whole.pop('runs')
      self.assertEqual(sample, whole)
      self.assertBetween(len(chosen), most // 2, most)
      self.assertGreater(runs.index(chosen[-1]), 0.7 * len(runs))
