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
"""Tests of `environments`."""

import json
import pathlib
import tempfile
from unittest import mock

from absl.testing import absltest
import tensorflow as tf

from experiments.run_results import environments


class EnvironmentsTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    self.folder = pathlib.Path(
        self.enter_context(tempfile.TemporaryDirectory())
    )

  def test_versions_and_machine_are_those_of_the_process(self):
    found = environments.collect()
    self.assertEqual(found['tensorflow'], tf.__version__)
    self.assertEqual(found['tensorflow-federated'], '0.87.0')
    self.assertGreater(found['cores'], 0)
    for name, value in found.items():
      self.assertTrue(value, name)

  def test_a_run_that_is_resumed_elsewhere_has_both(self):
    environments.record(self.folder)
    environments.record(self.folder)
    first = environments.read(self.folder)
    self.assertEqual(first, [environments.collect()])
    with mock.patch.object(environments.os, 'cpu_count', return_value=1234):
      environments.record(self.folder)
    self.assertEqual(
        environments.read(self.folder), [*first, {**first[0], 'cores': 1234}]
    )

  def test_a_run_without_a_record_has_none(self):
    self.assertEqual(environments.read(self.folder), [])
    (self.folder / 'environment.json').write_text('[{')
    self.assertEqual(environments.read(self.folder), [])
    environments.record(self.folder)
    self.assertLen(
        json.loads((self.folder / 'environment.json').read_text()), 1
    )


if __name__ == '__main__':
  absltest.main()
