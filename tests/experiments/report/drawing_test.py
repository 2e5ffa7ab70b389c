# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the figures of published tables, and of their options."""

import dataclasses
import os
from unittest import mock

from absl.testing import parameterized
import numpy as np

from experiments import command_line
from experiments import published
from experiments.report import drawing
from experiments.report import figures
from experiments.report import results as results_lib
from tests.experiments.report import made_up_runs
from tests.experiments.report import page_testing
from tff_adaptive import analysis

_NAN = float('nan')


class DrawingTest(page_testing.PageTestCase):

  def _intercept(self, name, table):
    """Returns what a function of `analysis` is to plot for a table."""
    drawn = mock.Mock(side_effect=ValueError('drawn'))
    with mock.patch.object(analysis, name, drawn):
      with self.assertRaisesRegex(ValueError, '^drawn$'):
        self.write(table)
    return drawn.call_args.args[0]

  @parameterized.named_parameters(
      ('curves', {'kind': 'curves', 'metric': 'clients/loss'}),
      ('curves_std', {'kind': 'curves', 'band': 'std', 'y_min': 0}),
      ('two_metrics', {'kind': 'curves', 'metric': ['clients/loss', '']}),
      ('step_sizes', {'kind': 'step_sizes', 'log_y': True}),
      ('heat_map', {'kind': 'heat_map', 'x_label': 'server rate'}),
      ('best_server_rate', {'kind': 'best_server_rate'}),
      ('final_over', {'kind': 'final_over', 'log_x': True}),
      (
          'panels',
          {
              'kind': 'final_over',
              'panels': {'A': {'group': 'g', 'columns': ['1', '10']}},
          },
      ),
  )
  def test_figures_of_every_kind(self, figure):
    table = made_up_runs.build_table(
        groups=['g', 'h'],
        rows=['0.1', '0.01'],
        columns=['1', '10', '100'],
        figure=figure,
    )
    self.write_runs(table, [0.5, 0.6, None, 0.7, None, 0.8, 0.9], step_size=0.1)
    self.write(table)
    self.assert_plotted()
    self.assertIn('Made by `report --table=table_1`.', self.read('.md'))

  @parameterized.parameters('partition', 'cka')
  def test_pictures_of_runs_are_copied_once(self, kind):
    table = made_up_runs.build_table(
        rows=['a', 'b', 'c'], figure={'kind': kind}
    )
    self.write_runs(table, [0.5, 0.5, 0.5])
    for cell, data in zip(table.cells, (b'one', b'one', b'two')):
      plots = self.runs_dir / cell.experiment_name / 'seed_0' / 'plots'
      plots.mkdir()
      (plots / f'{kind}.png').write_bytes(made_up_runs.PNG + data)
    self.write(table)
    found = sorted((self.output_dir / 'paper').glob('*.png'))
    self.assertEqual(
        [p.name for p in found], ['table_1_1.png', 'table_1_2.png']
    )
    self.assertEqual(
        [p.read_bytes() for p in found],
        [made_up_runs.PNG + data for data in (b'one', b'two')],
    )
    # Methods do not differ in their clients, but in the moments of these.
    for row in ('a', 'c'):
      self.assertEqual(f'CKA: {row}' in self.read('.md'), kind == 'cka', row)

  @parameterized.parameters('text', 'link', 'folder')
  def test_what_is_no_picture_of_a_run_is_not_copied(self, kind):
    table = made_up_runs.build_table(figure={'kind': 'partition'})
    self.write_runs(table, [0.5])
    plots = self.runs_dir / table.cells[0].experiment_name / 'seed_0' / 'plots'
    elsewhere = self.runs_dir / 'elsewhere'
    elsewhere.mkdir()
    secret = elsewhere / 'partition.png'
    secret.write_bytes(b'TOP SECRET' if kind == 'text' else made_up_runs.PNG)
    if kind == 'folder':
      plots.symlink_to(elsewhere)
    else:
      plots.mkdir()
      copied = plots / 'partition.png'
      if kind == 'link':
        copied.symlink_to(secret)
      else:
        copied.write_bytes(b'TOP SECRET')
    self.write(table)
    self.assertEmpty(list((self.output_dir / 'paper').glob('*.png')))

  def test_words_as_settings(self):
    table = made_up_runs.build_table(
        columns=['low', 'high'], figure={'kind': 'final_over'}
    )
    self.write_runs(table, [0.5, 0.6])
    self.write(table)
    self.assert_plotted()

  def test_a_group_may_measure_something_else(self):
    table = made_up_runs.build_table(
        groups=['images', 'errors'],
        rows=['0.1', '1'],
        columns=['1'],
        figure={'kind': 'heat_map'},
    )
    loss = published.Measure('clients/loss', 1.0, False)
    images, errors = table.groups
    table = dataclasses.replace(
        table, groups=(images, dataclasses.replace(errors, measure=loss))
    )
    self.write_runs(table, [0.5, 0.6, 0.5, 0.6])
    panels = self._intercept('plot_rate_grids', table)
    np.testing.assert_allclose(panels['images'].values, [[50.0], [60.0]])
    np.testing.assert_allclose(panels['errors'].values, [[0.25], [0.25]])
    self.assertTrue(panels['images'].higher_is_better)
    self.assertFalse(panels['errors'].higher_is_better)

  def test_both_conditions_of_the_step_size_up_to_a_round(self):
    table = made_up_runs.build_table(
        rows=['Delta-SGD'], figure={'kind': 'step_sizes', 'last_round': 3}
    )
    self.write_runs(table, [0.5], step_size=0.1)
    (curves,) = self._intercept('plot_band_curves', table).values()
    np.testing.assert_array_equal(curves['step size'].x, [1, 2, 3])

  def test_client_rates_that_train_nothing_are_left_out(self):
    grid = analysis.RateGrid(
        np.array([0.1, 1.0]), np.array([1.0, 10.0]), np.full([2, 2], 50.0)
    )
    # The worst loss that is finite is 2.0: the first rate gains 5 %.
    losses = np.array([[2.0, 1.9], [1.7, _NAN]])
    for min_gain, num_rates in ((0.0, 2), (0.1, 1), (0.2, 0)):
      shown = drawing.without_useless_rates(grid, losses, min_gain)
      self.assertLen(analysis.best_server_rates(shown)[0], num_rates)

  def test_figures_that_need_no_runs(self):
    self.write(published.find_table('fedcada/figure_3'))
    self.assertLen(list(self.output_dir.glob('fedcada/figure_3.png')), 1)

  def test_a_partition_is_plotted_from_the_data(self):
    table = made_up_runs.build_table(
        rows=['SGD'], columns=['few', 'many'], figure={'kind': 'partition'}
    )
    path = self.output_dir / 'clients.png'
    results = results_lib.without_runs(table)
    pictures = drawing.draw(results, path, data_dir='nowhere')
    self.assertLen(pictures, 2)
    self.assertTrue(all(picture.is_file() for picture in pictures))

  def test_a_partition_of_damaged_data_is_one_sentence_in_any_folder(self):
    (self.runs_dir / 'mnist.npz').write_bytes(b'PK')
    table = published.find_table('delta_sgd/figure_8')
    self.addCleanup(os.chdir, os.getcwd())
    os.chdir(self.runs_dir)
    with self.assertRaisesRegex(
        command_line.UserError, 'mnist.npz could not be'
    ):
      drawing.draw(
          results_lib.without_runs(table.restrict(columns=['MNIST'])),
          self.output_dir / 'clients.png',
          data_dir=str(self.runs_dir),
      )

  def _draw_grids(self, finals_by_cell):
    """Returns the heat maps of two groups of one row and three columns."""
    table = made_up_runs.build_table(
        groups=['g', 'h'],
        rows=['0.1'],
        columns=['1', '10', '100'],
        figure={'kind': 'heat_map'},
    )
    for cell, finals in zip(table.cells, finals_by_cell):
      made_up_runs.write_cell(
          self.runs_dir, cell, [[0.5, 0.5, 0.5, final] for final in finals]
      )
    return self._intercept('plot_rate_grids', table)

  def test_a_run_that_diverged_is_not_one_that_is_missing(self):
    grids = self._draw_grids([[0.5], [0.5, _NAN], []])
    self.assertEqual(list(grids), ['g'])
    np.testing.assert_array_equal(grids['g'].values, [[50.0, _NAN, _NAN]])
    np.testing.assert_array_equal(grids['g'].diverged, [[False, True, False]])

  def test_a_group_of_which_all_runs_diverged_is_shown(self):
    grids = self._draw_grids([[0.5], [0.5], [], [_NAN]])
    self.assertEqual(list(grids), ['g', 'h'])
    self.assertTrue(grids['h'].diverged[0, 0])
    self.assertIsNone(grids['h'].best())

  def test_pages_of_heat_maps_say_what_a_cross_is(self):
    table = made_up_runs.build_table(
        rows=['0.1'], columns=['1', '10'], figure={'kind': 'heat_map'}
    )
    made_up_runs.write_cell(self.runs_dir, table.cells[0], [[0.5] * 3 + [_NAN]])
    self.write(table)
    self.assertIn('a cross marks a diverged run', self.read('.md'))
    table = made_up_runs.build_table(
        rows=['0.1'], columns=['1', '10'], figure={'kind': 'best_server_rate'}
    )
    self.write(table)
    self.assertIn('None yet', self.read('.md'))


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
