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
"""Tests that BUILD has every module in one library, and a target a test."""

import collections
import pathlib

from absl.testing import absltest

_ROOT = pathlib.Path(__file__).resolve().parents[2]


def _glob(patterns, exclude=()):
  """Paths of the tree, as Bazel's `glob` finds them."""
  left_out = {path for p in exclude for path in _ROOT.glob(_recursive(p))}
  found = {path for p in patterns for path in _ROOT.glob(_recursive(p))}
  return sorted(
      path.relative_to(_ROOT).as_posix()
      for path in found - left_out
      if path.is_file() and '__pycache__' not in path.parts
  )


def _recursive(pattern):
  return f'{pattern}/*' if pattern.endswith('**') else pattern


def _evaluate(name, **functions):
  """Runs a file in Bazel's language, of which ours are also Python."""
  text = (_ROOT / name).read_text(encoding='utf-8')
  exec(compile(text, name, 'exec'), functions)  # pylint: disable=exec-used


def _targets():
  """The keyword arguments of all targets of BUILD, by their rule."""
  targets = collections.defaultdict(list)

  def rule(name):
    return lambda **arguments: targets[name].append(arguments)

  ignored = lambda *args, **kwargs: None
  _evaluate(
      'BUILD',
      glob=_glob,
      load=ignored,
      package=ignored,
      licenses=ignored,
      exports_files=ignored,
      all_requirements=['@pypi//numpy'],
      **{name: rule(name) for name in ('py_binary', 'py_library', 'py_test')},
  )
  return targets


class BuildFileTest(absltest.TestCase):

  def test_every_module_is_in_one_library(self):
    libraries = _targets()['py_library']
    sources = [source for library in libraries for source in library['srcs']]
    self.assertLen(set(sources), len(sources))
    expected = {
        path.relative_to(_ROOT).as_posix()
        for folder in ('tff_adaptive', 'tasks', 'experiments', 'tests')
        for path in (_ROOT / folder).rglob('*.py')
        if not path.name.endswith('_test.py')
    }
    self.assertCountEqual(sources, expected)

  def test_packages_depend_in_one_direction(self):
    deps = {t['name']: t['deps'] for t in _targets()['py_library']}
    self.assertEqual(
        deps,
        {
            'tff_adaptive': ['@pypi//numpy'],
            'tasks': [':tff_adaptive'],
            'experiments': [':tasks'],
            'testing': [':experiments'],
        },
    )

  def test_every_test_of_behaviour_is_a_target(self):
    targets = _targets()['py_test']
    self.assertGreater(len(targets), 250)
    names = [target['name'] for target in targets]
    self.assertLen(set(names), len(names))
    for target in targets:
      self.assertEqual(target['args'], [f'{target["name"]}.py'])
      self.assertIn(target['main'], target['srcs'])

  def test_binaries_and_data_are_there(self):
    targets = _targets()
    self.assertNotEmpty(targets['py_binary'])
    for target in targets['py_binary']:
      self.assertTrue((_ROOT / target['main']).is_file(), target['main'])
    for target in targets['py_library']:
      for path in target.get('data', ()):
        self.assertTrue((_ROOT / path).is_file(), path)
    data = [p for t in targets['py_library'] for p in t.get('data', ())]
    self.assertIn('experiments/presets/leaderboard.yaml', data)
    self.assertIn('tests/goldens/goldens.json', data)

  def test_module_takes_the_versions_of_the_lock(self):
    parsed = []

    class Extension:

      def toolchain(self, python_version):
        parsed.append(python_version)

      def parse(self, hub_name, python_version, requirements_lock):
        parsed.extend([hub_name, python_version, requirements_lock])

    _evaluate(
        'MODULE.bazel',
        module=lambda **kwargs: None,
        bazel_dep=lambda **kwargs: None,
        use_extension=lambda *args: Extension(),
        use_repo=lambda *args: None,
    )
    version, hub, same_version, lock = parsed
    self.assertEqual((version, hub), (same_version, 'pypi'))
    self.assertTrue((_ROOT / lock.removeprefix('//:')).is_file())


if __name__ == '__main__':
  absltest.main()
