# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the comparison with other frameworks, without them."""

import contextlib
import io
import json
import sys
from unittest import mock

import numpy as np

from benchmarks.peers import __main__ as peers
from benchmarks.peers import federation
from experiments.benchmark import reports
from experiments.benchmark import workloads
from experiments.run_results import environments
from tests import folder_testing

_OURS = 'tff_adaptive, compiled'


def _line(peer, workload, seconds, variant=''):
  return {
      'peer': peer,
      'version': '1.0',
      'workload': workload,
      'variant': variant,
      'rounds': 10,
      'sec_per_round_median': seconds,
  }


class PeersTest(folder_testing.FolderTestCase):

  def test_the_fastest_variant_counts_and_repetitions_by_their_median(self):
    lines = [
        _line('A', 'tiny_many', seconds, variant)
        for variant, times in (('1', (5, 1, 2)), ('2', (3, 3, 3)))
        for seconds in times
    ]
    self.assertEqual(peers.best_times(lines), {('A', 'tiny_many'): 2})

  def test_the_section_says_first_who_is_ahead(self):
    lines = [
        _line(_OURS, 'tiny_many', 0.2),
        _line(_OURS, 'emnist_cnn', 1.0),
        _line('tff_adaptive, program of XLA', 'tiny_many', 0.05),
        _line('A', 'tiny_many', 0.1),
        _line('B', 'emnist_cnn', 2.0),
    ]
    section = peers.format_section(lines)
    self.assertStartsWith(
        section,
        'A peer is ahead: A on `tiny_many` (0.1 s a round, ours 0.2 s).\n',
    )
    self.assertIn('\n| A 1.0 | 0.1 (0.5) |  |\n', section)
    self.assertIn('\n| B 1.0 |  | 2 (2) |\n', section)
    self.assertIn(f' CPU cores ({environments.processor()}) with ', section)
    self.assertStartsWith(
        peers.format_section(lines[:3] + lines[4:]), 'No peer is ahead.\n'
    )

  def test_only_the_section_of_a_page_changes(self):
    page = self.folder / 'page.md'
    page.write_text('a\n<!-- begin peers -->\nold\n<!-- end peers -->\nb\n')
    lines = str(self.folder / 'results' / 'peers.jsonl')
    peers.write_section(page, 'new\n', lines)
    self.assertEqual(
        page.read_text(),
        'a\n<!-- begin peers -->\nnew\n\n[All measurements]'
        '(results/peers.jsonl), one a line.\n<!-- end peers -->\nb\n',
    )

  def test_page_is_checked_before_anything_is_measured(self):
    page = self.folder / 'page.md'
    page.write_text('a\n')
    argv = ['peers', f'--page={page}', f'--environments={self.folder}/new']
    with mock.patch.object(sys, 'argv', argv):
      with self.assertRaisesRegex(ValueError, 'has no section'):
        peers.main()
    self.assertFalse((self.folder / 'new').exists())

  def test_peers_get_the_data_of_the_workload(self):
    path = str(self.folder / 'federation.npz')
    peers.save_federation('tiny_many', num_rounds=2, path=path)
    found = federation.Federation(path)
    workload = workloads.WORKLOADS['tiny_many']
    self.assertEqual(found.workload, 'tiny_many')
    self.assertEqual(found.num_clients, workload.num_clients)
    self.assertEqual(found.num_steps, 1)
    # Three rounds more are to warm up.
    self.assertEqual(found.cohorts.shape, (5, 100))
    self.assertLen(np.unique(found.cohorts[0]), 100)
    x, y = found.client(7)
    self.assertEqual((x.shape, y.shape), ((20, 784), (20,)))

  def test_stopwatch_prints_what_the_benchmark_reads(self):
    path = str(self.folder / 'federation.npz')
    federation.save(
        path,
        {'workload': 'tiny_many', 'batch_size': 2},
        x=np.zeros([3, 4, 1]),
        y=np.zeros([3, 4]),
        cohorts=np.zeros([5, 2], int),
    )
    stopwatch = federation.Stopwatch()
    for _ in range(5):
      with stopwatch.round():
        pass
    arguments = (federation.Federation(path), 'A', '1.0', 'fast')
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
      stopwatch.report(*arguments, [np.zeros(2)], [np.ones(2)])
    lines = self.folder / 'lines.jsonl'
    lines.write_text(out.getvalue())
    (line,) = reports.read([str(lines)])
    self.assertEqual(line, json.loads(out.getvalue()))
    self.assertEqual(line['rounds'], 2)
    self.assertEqual(line['clients_per_round'], 2)
    with self.assertRaisesRegex(RuntimeError, 'did not train'):
      stopwatch.report(*arguments, [np.zeros(2)], [np.zeros(2)])
