# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `environments`."""

from importlib import metadata
import json
import os
import re
import subprocess
from unittest import mock

import keras

from experiments.run_results import environments
from tests import folder_testing
import tff_adaptive


class EnvironmentsTest(folder_testing.FolderTestCase):

  def test_versions_and_machine_are_those_of_the_process(self):
    found = environments.collect()
    self.assertEqual(found['tensorflow'], metadata.version('tensorflow'))
    self.assertEqual(found['tensorflow-federated'], '0.87.0')
    # Tasks are of Keras 3, but for two; TFF needs Keras 2.
    self.assertEqual(found['keras'], keras.__version__)
    self.assertStartsWith(found['tf_keras'], '2.')
    self.assertGreater(found['cores'], 0)
    for name, value in found.items():
      self.assertTrue(value, name)

  def test_own_version_has_the_commit_of_a_checkout(self):
    # Neither the variables of a hook nor the settings of a user.
    env = {k: v for k, v in os.environ.items() if not k.startswith('GIT_')}
    env |= {'GIT_CONFIG_GLOBAL': os.devnull, 'GIT_CONFIG_NOSYSTEM': '1'}
    self.enter_context(mock.patch.dict(os.environ, env, clear=True))
    package = self.folder / 'tff_adaptive' / '__init__.py'
    package.parent.mkdir()
    package.write_text('')
    path = mock.patch.object(tff_adaptive, '__file__', str(package))
    with path:
      version = tff_adaptive.__version__
      self.assertEqual(environments.collect()['tff_adaptive'], version)
      identity = ('-c', 'user.name=a', '-c', 'user.email=a@b')
      for arguments in (
          ('init', '--quiet'),
          ('add', '.'),
          (*identity, 'commit', '--quiet', '--message=a'),
      ):
        subprocess.run(('git', *arguments), cwd=self.folder, check=True)
      self.assertRegex(
          environments.collect()['tff_adaptive'],
          rf'^{re.escape(version)} \([0-9a-f]{{7,}}\)$',
      )
      package.write_text('changed')
      self.assertEndsWith(environments.collect()['tff_adaptive'], '-dirty)')
      with mock.patch.dict(os.environ, PATH=''):
        self.assertEqual(environments.collect()['tff_adaptive'], version)

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
