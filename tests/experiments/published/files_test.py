# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of reading the data files of published tables."""

from absl.testing import parameterized
import yaml

from experiments.published import files
from experiments.published import tables
from tests import folder_testing

_TABLE = {
    'title': 'Accuracies.',
    'source': 'Table 1',
    'metric': 'accuracy',
    'scale': 100,
    'estimate': 'final',
    'specified': ['--client_epochs=1', '--{task}_alpha=1'],
    'groups': [
        {'name': 'alpha = 1'},
        {'name': 'alpha = 0.1', 'specified': ['--{task}_alpha=0.1']},
    ],
    'rows': [
        {'name': 'SGD', 'specified': ['--client_optimizer=sgd']},
        {'name': 'Adam', 'assumed': ['--client_optimizer=adam']},
    ],
    'columns': [
        {'name': 'MNIST', 'specified': ['--task=mnist', '--client_epochs=2']},
        {'name': 'FMNIST', 'specified': ['--task=fashion_mnist']},
    ],
    'published': {
        'alpha = 1': {'SGD': [98, 87], 'Adam': [94, None]},
        'alpha = 0.1': {'SGD': [97, 86]},
    },
}
_FIGURE = {
    'title': 'Curves.',
    'source': 'Figure 1',
    'runs_of': 'table_1',
    'figure': {'kind': 'curves'},
}
_OTHER = dict(_FIGURE, runs_of='table_0')


def _without(mapping, key):
  return {name: value for name, value in mapping.items() if name != key}


class FilesTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self.presets = folder_testing.new(self)

  def _write(self, raw, name='table_1', paper='paper'):
    path = self.presets / paper / f'{name}.yaml'
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump(raw, sort_keys=False), encoding='utf-8')

  def _read(self, raw, name='table_1'):
    self._write(raw, name)
    return files.find_table(f'paper/{name}', self.presets)

  def _read_error(self, raw, name='table_1'):
    with self.assertRaises(tables.PublishedError) as caught:
      self._read(raw, name)
    return str(caught.exception)

  def test_cells_are_in_the_order_of_the_axes(self):
    table = self._read(_TABLE)
    self.assertEqual(
        [cell.key for cell in table.cells][:3],
        [
            ('alpha = 1', 'SGD', 'MNIST'),
            ('alpha = 1', 'SGD', 'FMNIST'),
            ('alpha = 1', 'Adam', 'MNIST'),
        ],
    )
    self.assertLen(table.cells, 8)

  def test_numbers_are_those_of_the_cell(self):
    table = self._read(_TABLE)
    self.assertEqual(table.cell('alpha = 0.1', 'SGD', 'FMNIST').published, 86)
    for key in (
        ('alpha = 1', 'Adam', 'FMNIST'),
        ('alpha = 0.1', 'Adam', 'MNIST'),
    ):
      self.assertIsNone(table.cell(*key).published)
    self.assertIsNone(table.cells[0].published_std)

  def test_a_figure_is_chosen_on_test_if_its_table_is(self):
    self._write(dict(_TABLE, chosen_on_test=True))
    self.assertTrue(self._read(_FIGURE, 'figure_1').chosen_on_test)
    figure = dict(_FIGURE, chosen_on_test=False)
    self.assertFalse(self._read(figure, 'figure_1').chosen_on_test)

  def test_a_figure_differs_in_its_own_way(self):
    table = self._read(dict(_TABLE, differs=['One seed.', 'No cap.']))
    self.assertEqual(table.differs, ('One seed.', 'No cap.'))
    self.assertEmpty(self._read(_FIGURE, 'figure_1').differs)
    figure = self._read(dict(_FIGURE, differs=['Coarse.']), 'figure_1')
    self.assertEqual(figure.differs, ('Coarse.',))

  def test_flags_go_from_the_general_to_the_special(self):
    raw = dict(
        _TABLE,
        cells=[
            {'specified': ['--max_examples=8']},
            {'row': 'Adam', 'specified': ['--max_examples=4']},
        ],
    )
    cell = self._read(raw).cell('alpha = 0.1', 'Adam', 'MNIST')
    self.assertEqual(
        [flag.text for flag in cell.flags],
        [
            '--client_epochs=1',
            '--mnist_alpha=1',
            '--mnist_alpha=0.1',
            '--task=mnist',
            '--client_epochs=2',
            '--client_optimizer=adam',
            '--max_examples=8',
            '--max_examples=4',
        ],
    )
    self.assertEqual(cell.flags[5].origin.value, 'assumed')

  def test_task_stands_in_the_name_of_a_flag(self):
    cell = self._read(_TABLE).cell('alpha = 0.1', 'SGD', 'FMNIST')
    self.assertEqual(cell.flags[1].name, 'fashion_mnist_alpha')
    self.assertEqual(cell.flags[1].text, '--fashion_mnist_alpha=1')

  def test_axis_that_is_not_there_has_one_entry_without_a_name(self):
    raw = _without(dict(_TABLE, published={'SGD': [98, 87]}), 'groups')
    table = self._read(raw)
    self.assertEqual([group.name for group in table.groups], [''])
    self.assertEqual(table.cell('', 'SGD', 'MNIST').published, 98)

  def test_table_takes_axes_of_another(self):
    self._write(_TABLE)
    raw = dict(
        _without(_without(_TABLE, 'groups'), 'published'),
        rows='table_1',
        columns=[{'name': 'MNIST', 'like': 'table_1', 'lost': ['--seed=1']}],
    )
    table = self._read(raw, 'table_2')
    self.assertEqual([row.name for row in table.rows], ['SGD', 'Adam'])
    self.assertEqual(
        [flag.text for flag in table.columns[0].flags],
        ['--task=mnist', '--client_epochs=2', '--seed=1'],
    )

  def test_what_is_said_of_cells_is_shared(self):
    cells = [
        {'row': 'SGD', 'specified': ['--sgd_momentum=0.5']},
        {'row': 'Adam', 'specified': ['--adam_beta_1=0.5']},
    ]
    self._write(dict(_TABLE, cells=cells))
    shared = {
        'like': 'table_1',
        'of': {'row': 'SGD'},
        'column': 'FMNIST',
        'origin': 'assumed',
    }
    table = self._read(dict(_TABLE, cells=[shared]), 'table_2')
    found = {
        (cell.row, cell.column, cell.flags[-1].origin.value)
        for cell in table.cells
        if cell.flags[-1].text == '--sgd_momentum=0.5'
    }
    self.assertEqual(
        found, {('SGD', 'FMNIST', 'assumed'), ('Adam', 'FMNIST', 'assumed')}
    )

  def test_column_may_measure_something_else(self):
    loss = {'metric': 'loss', 'scale': 1, 'higher_is_better': False}
    columns = [_TABLE['columns'][0], {**_TABLE['columns'][1], **loss}]
    table = self._read(dict(_TABLE, columns=columns))
    self.assertIsNone(table.columns[0].measure)
    self.assertEqual(
        table.columns[1].measure, tables.Measure('loss', 1.0, False)
    )

  def test_the_name_of_a_metric_tells_its_direction(self):
    other = {**_TABLE['columns'][1], 'metric': 'recall'}
    raw = dict(_TABLE, metric='loss', columns=[_TABLE['columns'][0], other])
    for given, expected in (({}, False), ({'higher_is_better': True}, True)):
      table = self._read({**raw, **given})
      self.assertEqual(table.measure('MNIST').higher_is_better, expected)
      self.assertTrue(table.measure('FMNIST').higher_is_better)
    raw = dict(raw, higher_is_better=False)
    self.assertTrue(self._read(raw).measure('FMNIST').higher_is_better)

  def test_table_stands_beside_another(self):
    self._write(_TABLE)
    raw = dict(
        _without(_TABLE, 'published'),
        rows=[{'name': 'SPS', 'specified': ['--client_optimizer=sps']}],
        beside='table_1',
    )
    table = self._read(raw, 'table_2')
    self.assertEqual([row.name for row in table.rows], ['SGD', 'Adam', 'SPS'])
    self.assertLen(table.cells, 12)
    self.assertEqual(table.cells[0].table, 'table_1')
    self.assertEqual(table.cells[-1].table, 'table_2')

  def test_table_stands_beside_the_same_columns_of_another(self):
    self._write(_TABLE)
    raw = dict(
        _without(_TABLE, 'published'),
        rows=[{'name': 'SPS', 'specified': ['--client_optimizer=sps']}],
        columns=[{'name': 'MNIST', 'like': 'table_1'}],
        beside='table_1',
    )
    table = self._read(raw, 'table_2')
    self.assertEqual([column.name for column in table.columns], ['MNIST'])
    self.assertLen(table.cells, 6)

  def test_table_measures_the_runs_of_another(self):
    self._write(_TABLE)
    raw = {
        'title': 'Losses.',
        'source': 'Table 2',
        'runs_of': 'table_1',
        'metric': 'loss',
        'higher_is_better': False,
        'estimate': 'last_100_rounds',
        'published': {'alpha = 1': {'Adam': [0.5, 0.25]}},
    }
    table = self._read(raw, 'table_2')
    self.assertEqual(table.measure('MNIST'), tables.Measure('loss', 1.0, False))
    self.assertEqual(table.estimate, 'last_100_rounds')
    cell = table.cell('alpha = 1', 'Adam', 'FMNIST')
    self.assertEqual(cell.published, 0.25)
    self.assertEqual(cell.table, 'table_1')
    self.assertIsNone(table.cell('alpha = 1', 'SGD', 'MNIST').published)

  def test_figure_joins_the_runs_of_tables(self):
    self._write(_TABLE)
    other = dict(_TABLE, rows=['Yogi'], published={})
    self._write(other, 'table_2')
    figure = self._read(
        dict(_FIGURE, runs_of=['table_1', 'table_2'], rows=['Adam', 'Yogi']),
        'figure_1',
    )
    self.assertEqual(
        {cell.table for cell in figure.cells}, {'table_1', 'table_2'}
    )
    self.assertLen(figure.cells, 8)

  def test_figure_has_cells_of_its_table(self):
    self._write(_TABLE)
    figure = self._read(
        dict(_FIGURE, rows=['Adam'], groups=['alpha = 1']), 'figure_1'
    )
    self.assertEqual(
        [cell.experiment_name for cell in figure.cells],
        [
            'paper/table_1/alpha_1.adam.mnist',
            'paper/table_1/alpha_1.adam.fmnist',
        ],
    )
    self.assertEqual(figure.name, 'figure_1')
    self.assertEqual(figure.figure, {'kind': 'curves'})
    self.assertEqual(figure.default_measure.metric, 'accuracy')
    self.assertLen(figure.columns, 2)

  def test_changed_file_is_read_again(self):
    self._read(_TABLE)
    self.assertEqual(self._read(dict(_TABLE, seeds=3)).seeds, 3)

  def test_tables_come_before_figures_by_number(self):
    for name in ('figure_1', 'table_10', 'table_2'):
      self._write(_TABLE, name)
    self._write(_TABLE, paper='another')
    names = [
        f'{table.paper}/{table.name}'
        for table in files.load_tables(presets=self.presets)
    ]
    self.assertEqual(
        names,
        [
            'another/table_1',
            'paper/table_2',
            'paper/table_10',
            'paper/figure_1',
        ],
    )
    self.assertLen(files.load_tables('paper', self.presets), 3)
    for paper in ('fedx', '', '/x'):
      with self.assertRaisesRegex(
          tables.PublishedError,
          f"no paper '{paper}'; choose one of another, paper$",
      ):
        files.load_tables(paper, self.presets)

  # What is wrong, its place, and what was found there.
  @parameterized.parameters(
      (dict(_TABLE, color='red'), 'paper/table_1', "'color'"),
      (_without(_TABLE, 'title'), 'paper/table_1.title', 'missing'),
      (_without(_TABLE, 'metric'), 'paper/table_1.metric', 'missing'),
      (dict(_TABLE, estimate='mean'), "'estimate'", "'mean'"),
      (dict(_TABLE, seeds=0), "'seeds'", '0'),
      (dict(_TABLE, rows=[{'title': 'SGD'}]), '.rows[0]', "'title'"),
      (dict(_TABLE, rows=['SGD', {'name': 1}]), '.rows[1].name', 'found 1'),
      (dict(_TABLE, rows=['SGD', 'SGD']), '.rows', 'SGD'),
      (dict(_TABLE, rows='table_9'), 'paper/table_9', 'paper/table_1'),
      (
          dict(_TABLE, rows=[{'name': 'SGD', 'like': 'table_9'}]),
          'paper/table_9',
          'paper/table_1',
      ),
      (
          dict(_TABLE, rows=[{'name': 'Yogi', 'like': 'table_0'}]),
          '.rows like table_0',
          "'Yogi'",
      ),
      (dict(_TABLE, published={'a = 2': {}}), '.published', "'a = 2'"),
      (
          dict(_TABLE, published={'alpha = 1': {'Yogi': [1, 2]}}),
          '.published',
          "'Yogi'",
      ),
      (
          dict(_TABLE, published={'alpha = 1': {'SGD': [1, 'high']}}),
          ".published['alpha = 1']['SGD'][1]",
          "'high'",
      ),
      (
          dict(_TABLE, published_std={'alpha = 1': {'SGD': [1]}}),
          '.published_std',
          "'SGD'",
      ),
      (
          dict(_TABLE, columns=['MNIST', 'FMNIST']),
          "('alpha = 1', 'SGD', 'MNIST')",
          '--task',
      ),
      (dict(_TABLE, cells=[{'row': 'Yogi'}]), '.cells: row', "'Yogi'"),
      (dict(_TABLE, cells=[{'rows': 'SGD'}]), '.cells[0]', "'rows'"),
      (dict(_TABLE, cells=[{'origin': 'none'}]), '.cells[0]', "'none'"),
      (dict(_TABLE, specified=['--{net}_a=1']), '{net}', '--net'),
      (dict(_TABLE, metric='turnover'), 'higher_is_better', "'turnover'"),
      (dict(_FIGURE, runs_of='table_9'), 'paper/table_9', 'paper/table_0'),
      (dict(_OTHER, rows=['Yogi']), 'rows', "'Yogi'"),
      (dict(_OTHER, published={}), 'paper/table_1', "'published'"),
      (dict(_OTHER, metric='loss'), '.estimate', 'missing'),
      (_without(_OTHER, 'figure'), '.figure', 'missing'),
      (dict(_OTHER, rows=[{'name': 'SGD'}]), '.rows[0]', "'SGD'"),
      (
          dict(_OTHER, metric='loss', estimate='best', published={'SGD': {}}),
          '.published',
          "'SGD'",
      ),
      (['title'], 'paper/table_1', "['title']"),
  )
  def test_an_error_names_the_place_and_what_was_found(self, raw, *named):
    self._write(_TABLE, 'table_0')
    message = self._read_error(raw)
    for name in named:
      self.assertIn(name, message)

  @parameterized.parameters(
      'paper/table_2', 'table_1', 'paper', '../paper/t', 'a' * 256
  )
  def test_unknown_table_is_refused_with_those_there_are(self, name):
    self._write(_TABLE)
    with self.assertRaisesRegex(
        tables.PublishedError, 'choose one of paper/table_1$'
    ):
      files.find_table(name, self.presets)
