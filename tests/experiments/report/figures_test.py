# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the figures of a table, and of their numbers."""

from absl.testing import parameterized

from experiments import published
from experiments.report import figures
from tests.experiments.report import made_up_runs


class FiguresTest(parameterized.TestCase):

  def test_defaults(self):
    table = made_up_runs.build_table()
    self.assertEqual(figures.read_options(table), figures.IN_PERCENT)
    table = made_up_runs.build_table(metric='loss', scale=1.0)
    self.assertEqual(figures.read_options(table), figures.DEFAULT)

  def test_options(self):
    table = made_up_runs.build_table(
        figure={'kind': 'curves', 'log_y': True, 'y_min': 50, 'x_label': 'T'}
    )
    self.assertEqual(
        figures.read_options(table),
        figures.FigureOptions('curves', log_y=True, y_min=50, x_label='T'),
    )

  @parameterized.parameters(
      ({}, 'kind must be one of curves, heat_map, .*, found None$'),
      ({'kind': 'pie'}, "kind must be one of .*, found 'pie'$"),
      (
          {'kind': 'curves', 'log': 1},
          "takes the options x_label, .*, band, found 'log'$",
      ),
      ({'kind': 'heat_map', 'band': 'std'}, "takes .*, found 'band'$"),
      ({'kind': 'heat_map', 'log_x': True}, "takes .*, found 'log_x'$"),
      ({'kind': 'cka', 'x_label': 'client'}, "part, clients, found 'x_label'"),
      ({'kind': 'curves', 'log_y': 'yes'}, "true or false, found 'yes'$"),
      (
          {'kind': 'curves', 'y_max': True},
          'y_max: must be a number, found True$',
      ),
      ({'kind': 'curves', 'x_label': 1}, 'x_label: must be a text, found 1$'),
      (
          {'kind': 'curves', 'band': 'all'},
          "band must be one of range, std, found 'all'$",
      ),
      ({'kind': 'heat_map'}, 'rows must be numbers above 0, found SGD, .*$'),
      ({'kind': 'final_over', 'log_x': True}, 'columns must be .* digits$'),
  )
  def test_errors_name_the_place_and_what_would_be_right(self, figure, text):
    table = made_up_runs.build_table(figure=figure)
    with self.assertRaisesRegex(
        published.PublishedError, f'^paper/table_1: figure.*{text}'
    ):
      figures.read_options(table)

  @parameterized.parameters('0', '-1', 'inf', 'nan')
  def test_rates_that_no_axis_can_show(self, name):
    with self.assertRaisesRegex(
        published.PublishedError, f'found 0.1, {name}$'
    ):
      figures.to_rates(['0.1', name], 'here')
