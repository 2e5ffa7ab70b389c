# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the page for users of older versions of TFF."""

import asyncio
import collections
import os
import re

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests import folder_testing
from tests import page_testing
from tests.tff_adaptive import testing
from tff_adaptive import aggregators
from tff_adaptive import algorithms
from tff_adaptive import data
from tff_adaptive import optimizers
from tff_adaptive import runtime
from tff_adaptive import simulation

_PAGE = 'docs/migration/older_tff.md'
_TABLES = ('learning', 'argument', 'type', 'runtime', 'simulation')


def _given():
  """Returns the names that the rows of the page assume."""
  generator = np.random.default_rng(0)
  examples = collections.OrderedDict(
      x=generator.normal(size=[8, 4]).astype(np.float32),
      y=generator.integers(3, size=8).astype(np.int32),
  )
  dataset = tf.data.Dataset.from_tensor_slices(examples).batch(4)
  loss = testing.loss()

  def create_keras_model():
    return tf.keras.Sequential(
        [tf.keras.layers.InputLayer((4,)), tf.keras.layers.Dense(3)]
    )

  def model_fn():
    return tff.learning.models.from_keras_model(
        create_keras_model(), loss, input_spec=dataset.element_spec
    )

  sgd = tff.learning.optimizers.build_sgdm(0.1)
  process = tff.learning.algorithms.build_weighted_fed_avg(model_fn, sgd)
  output = process.next(process.initialize(), [dataset])
  compiled_model = create_keras_model()
  compiled_model.compile(loss=loss)
  weights = process.get_model_weights(output.state)
  tensors = {'client_0': examples}
  return dict(
      aggregator=tff.learning.robust_aggregator(),
      aggregators=aggregators,
      algorithms=algorithms,
      client_data=tff.simulation.datasets.TestClientData(tensors),
      client_ids=list(tensors),
      compiled_model=compiled_model,
      create_dataset=lambda client_id: dataset,
      data=data,
      dataset=dataset,
      dummy_batch=next(iter(dataset)),
      keras_model=create_keras_model(),
      loss=loss,
      metrics=output.metrics,
      model_fn=model_fn,
      np=np,
      optimizers=optimizers,
      output=output,
      process=process,
      runtime=runtime,
      select_clients=lambda round_num: [dataset],
      sgd=sgd,
      simulation=simulation,
      spec=dataset.element_spec,
      state=output.state,
      stock=tff.learning.algorithms.build_weighted_fed_avg,
      tensors=tensors,
      tf=tf,
      tff=tff,
      trainable=weights.trainable,
      weights=weights,
  )


def _rows(table):
  """Returns the rows of a table: old names, their error, their successor."""
  rows = page_testing.table_rows(page_testing.read(_PAGE), table)
  assert rows, table
  return rows


def _successors(cell):
  """Returns the expressions of a cell; the names of arguments are none."""
  names = page_testing.names_in([re.sub(r'\[.*?\]\(.*?\)', '', cell)])
  return [name for name in names if '.' in name or '(' in name]


class OlderTffTest(tf.test.TestCase, parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.enterClassContext(runtime.CompiledContext())
    cls.given = _given()

  def setUp(self):
    super().setUp()
    # TFF's training loop needs one, which `asyncio.run` of other tests removes.
    loop = asyncio.new_event_loop()
    self.addCleanup(loop.close)
    asyncio.set_event_loop(loop)
    # Some of the successors write to the current folder.
    self.addCleanup(os.chdir, os.getcwd())
    os.chdir(folder_testing.new(self))

  @parameterized.parameters(*_TABLES)
  def test_old_names_end_in_the_error_of_the_page(self, table):
    for before, error, _ in _rows(table):
      kind, _, text = error.strip('`').partition(': ')
      for name in page_testing.names_in([before]):
        with self.subTest(name):
          with self.assertRaises(Exception) as raised:
            eval(name, dict(self.given))  # pylint: disable=eval-used
          self.assertEqual(type(raised.exception).__name__, kind)
          said = str(raised.exception).replace('`', "'")
          if not text:  # The error names one of the names on the way.
            missing = re.search(r"no attribute '(\w+)'$", said)
            self.assertIn(missing.group(1), name)
          for part in text.split(', for '):
            self.assertIn(part, said)

  @parameterized.parameters(*_TABLES)
  @pytest.mark.slow
  def test_successors_work(self, table):
    with tff.framework.get_context_stack().install(runtime.CompiledContext()):
      for _, _, now in _rows(table):
        for name in _successors(now):
          with self.subTest(name):
            eval(name, dict(self.given))  # pylint: disable=eval-used

  def test_each_row_names_a_successor_or_says_what_to_do(self):
    for table in _TABLES:
      for before, error, now in _rows(table):
        self.assertRegex(error, r'^`\w+Error(: [^`]+)?`$')
        self.assertNotEmpty(page_testing.names_in([before]))
        self.assertGreaterEqual(len(now), 8)

  def test_the_program_fails_before_its_port(self):
    (program,) = [
        block
        for block in page_testing.find_blocks(page_testing.read(_PAGE))
        if block.language == 'diff'
    ]
    lines = program.text.splitlines()
    old = '\n'.join(x[1:] for x in lines if not x.startswith('+'))
    with self.assertRaisesRegex(AttributeError, 'set_local_execution_context'):
      exec(old, {'__name__': 'old'})  # pylint: disable=exec-used
