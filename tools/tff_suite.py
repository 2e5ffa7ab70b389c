# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs TensorFlow Federated's own tests on both runtimes, and compares them.

`.venv/bin/python -m tools.tff_suite --checkout=FOLDER --output=table.md` takes
a checkout of the installed version of TFF. Each test file runs in its own
process, once unchanged and once with the compiled context wherever it sets a
synchronous context of TFF. The tests and the modules that only tests import
come from the checkout; everything else is the installed TFF. With
`--results=FILE`, the same command continues an interrupted run. Exits with 1 if
a test passes on TFF's runtime but not on ours.
"""

import argparse
from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import importlib
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import re
import runpy
import subprocess
import sys
import tempfile
from typing import Optional, Union
import xml.etree.ElementTree

from experiments import command_line
from experiments import pages
from experiments.run_results import environments

RUNTIMES = ('native', 'compiled')
_PACKAGE = 'tensorflow_federated'
_EXAMPLES = 'examples'
# The tests of the results of computations, not of their compilation.
_PARTS = (
    'aggregators',
    'analytics',
    'core/backends/mapreduce',
    'core/templates',
    'learning',
    'program',
    'simulation',
    'tests',
)
_PATTERNS = (
    *(f'{_PACKAGE}/python/{part}/**/*_test.py' for part in _PARTS),
    f'{_EXAMPLES}/**/*_test.py',
)
_CONTEXTS = ('core.backends.native', 'core.backends.test')
# The first sentence of the compiled runtime's warning.
_HANDED_OVER = re.compile(
    r"RuntimeWarning: (?=.*TFF's native runtime)"
    r"(?:TFF's native runtime takes over, because )?(.*?)\. "
)
# Parameters of a test that are objects are named by where they are in memory.
_ADDRESS = re.compile(r' at 0x[0-9a-f]+')
# A line of absl's log, with the result of a test.
_FINISHED = re.compile(r'\[ +(?P<result>OK|FAILED|SKIPPED) +\] (?P<name>.*)')
_LOGGED_RESULTS = {'OK': 'passed', 'FAILED': 'failed', 'SKIPPED': 'skipped'}
_LOADING_FAILED = '(the file)'


@dataclasses.dataclass(frozen=True)
class Outcome:
  """The results of the tests of a file.

  Attributes:
    results: `passed`, `skipped` or the first line of the failure, by test name.
    reasons: The reasons why computations fell back to TFF's runtime.
  """

  results: Mapping[str, str]
  reasons: Sequence[str] = ()

  def count(self) -> str:
    """Returns the numbers of passed, failed and skipped tests as text."""
    values = list(self.results.values())
    passed, skipped = values.count('passed'), values.count('skipped')
    return f'{passed} / {len(values) - passed - skipped} / {skipped}'


class _FinderInCheckout:
  """Finds modules of TFF that the wheel lacks in a checkout."""

  def __init__(self, checkout: pathlib.Path):
    self._checkout = checkout

  def find_spec(self, name, path=None, target=None):
    """Implements `importlib.abc.MetaPathFinder`."""
    del path, target
    parts = name.split('.')
    if parts[0].startswith(_EXAMPLES) and parts[0] != _EXAMPLES:
      # TFF's examples import themselves so: `examplesprogram`.
      parts[:1] = [_EXAMPLES, parts[0].removeprefix(_EXAMPLES)]
    elif parts[0] != _PACKAGE:
      return None
    place = self._checkout.joinpath(*parts)
    file = place.with_suffix('.py')
    if file.is_file():
      return importlib.util.spec_from_file_location(name, file)
    if place.is_dir():
      spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
      spec.submodule_search_locations = [str(place)]
      return spec
    return None


def _put_ours_in_place() -> None:
  """Replaces TFF's synchronous contexts by the compiled one."""
  # pylint: disable=g-import-not-at-top
  from tff_adaptive import runtime  # The parent needs no TensorFlow.

  # pylint: enable=g-import-not-at-top
  ours = {
      'create': runtime.CompiledContext,
      'set': lambda **options: runtime.CompiledContext(**options).install(),
  }
  for package in _CONTEXTS:
    for suffix in ('', '.execution_contexts'):
      module = importlib.import_module(f'{_PACKAGE}.python.{package}{suffix}')
      for name in dir(module):
        verb, _, rest = name.partition('_sync_')
        if rest.endswith('cpp_execution_context') and verb in ours:
          setattr(module, name, _ignoring_options(ours[verb]))
  runtime.CompiledContext(default_num_clients=0).install()


def _ignoring_options(ours):
  """Returns a function that takes TFF's options and builds our context."""

  def build(*, default_num_clients=0, **options):
    del options  # They concern TFF's workers.
    return ours(default_num_clients=default_num_clients)

  return build


def run_file(checkout: pathlib.Path, test: str, context: str) -> None:
  """Runs a test file in this process and exits.

  Args:
    checkout: The folder of a checkout of TFF.
    test: The path of the test file in the checkout.
    context: One of `RUNTIMES`.
  """
  # Imported first, since this patches TFF for the installed TensorFlow, and
  # tensorflow-privacy with it.
  importlib.import_module('tff_adaptive')
  importlib.import_module(_PACKAGE)
  sys.meta_path.append(_FinderInCheckout(checkout))
  sys.path.append(str(checkout))  # For `examples`.
  if context == 'compiled':
    _put_ours_in_place()
  runpy.run_path(str(checkout / test), run_name='__main__')


def run_in_process(
    checkout: pathlib.Path, test: str, context: str, timeout: float
) -> Outcome:
  """Runs a test file in its own process.

  Args:
    checkout: The folder of a checkout of TFF.
    test: The path of the test file in the checkout.
    context: One of `RUNTIMES`.
    timeout: The time limit in seconds.

  Returns:
    The results of its tests that finished. A file that cannot be loaded, exits
    early or reaches the time limit counts as one more failed test.
  """
  with tempfile.TemporaryDirectory() as folder:
    report = pathlib.Path(folder, 'report.xml')
    command = [sys.executable, '-m', 'tools.tff_suite']
    command += [f'--checkout={checkout}', f'--run={test}']
    command += [f'--context={context}', f'--xml_output_file={report}']
    # A file, since TFF's worker would keep a pipe open after the process ended.
    with open(pathlib.Path(folder, 'log'), 'w+', encoding='utf-8') as log:
      process = subprocess.Popen(  # pylint: disable=consider-using-with
          command,
          stdout=log,
          stderr=log,
          start_new_session=True,
          # A database that a test leaves there is in the way of its next run.
          env={**os.environ, 'TEST_TMPDIR': folder},
      )
      try:
        code: Union[int, str] = process.wait(timeout)
      except subprocess.TimeoutExpired:
        code = f'a timeout after {timeout:g} s'
      finally:
        command_line.kill_group(process)
      log.seek(0)
      lines = log.read().splitlines()
    results = _read_report(report) or _read_log(lines)
  if not results or code not in (0, 1):
    last = lines[-1].strip() if lines else ''
    results[_LOADING_FAILED] = f'ended with {code}: {last}'
  found = (_HANDED_OVER.search(line) for line in lines)
  return Outcome(results, sorted({m.group(1) for m in found if m}))


def _read_report(report: pathlib.Path) -> dict[str, str]:
  """Returns the results by test name, from the report of absl.

  absl creates the file at the start and writes it at the end: there are no
  results if the process was ended in between.
  """
  if not report.is_file() or not report.stat().st_size:
    return {}
  results = {}
  for case in xml.etree.ElementTree.parse(report).iter('testcase'):
    name = _ADDRESS.sub('', f'{case.get("classname")}.{case.get("name")}')
    faults = [*case.findall('failure'), *case.findall('error')]
    if faults:
      message = (faults[0].get('message') or 'failed').strip()
      results[name] = message.splitlines()[0]
    elif case.find('skipped') is not None or case.get('status') == 'notrun':
      results[name] = 'skipped'
    else:
      results[name] = 'passed'
  return results


def _read_log(lines: Iterable[str]) -> dict[str, str]:
  """Returns the results of the tests that finished before a process ended."""
  found = filter(None, map(_FINISHED.match, lines))
  return {
      f'__main__.{_ADDRESS.sub("", m["name"])}': _LOGGED_RESULTS[m['result']]
      for m in found
  }


def differences(native: Outcome, compiled: Outcome) -> dict[str, str]:
  """Returns the tests that pass only on TFF's runtime, with the failures."""
  return {
      name: compiled.results.get(name, 'not run')
      for name, result in native.results.items()
      if result == 'passed' and compiled.results.get(name) != 'passed'
  }


def to_page(outcomes: Mapping[str, Mapping[str, Outcome]]) -> str:
  """Returns the page of the outcomes.

  Args:
    outcomes: The outcomes by test file and runtime.

  Returns:
    Totals, a table with one row per file, and a list of the differences.
  """
  rows, details = [], []
  for test, by_runtime in outcomes.items():
    native, compiled = (by_runtime[runtime] for runtime in RUNTIMES)
    found = differences(native, compiled)
    rows.append(
        [
            pages.code(test),
            native.count(),
            compiled.count(),
            str(len(found)),
            '; '.join(compiled.reasons),
        ]
    )
    details += [
        f'* {pages.code(test)}, {pages.text(name)}: {pages.text(what)}'
        for name, what in found.items()
    ]
  blocks = [
      _summary(outcomes),
      'Passed / failed / skipped; *differs* counts the tests that pass only on '
      "TFF's runtime; *fallback* gives the reasons for falling back to it.",
      pages.table(
          ['file', 'native', 'compiled', 'differs', 'fallback'],
          rows,
          num_labels=5,
      ),
  ]
  if details:
    blocks += [pages.heading('Differences'), '\n'.join(details)]
  return pages.to_markdown(
      'Tests of TensorFlow Federated on both runtimes', blocks
  )


def _summary(outcomes: Mapping[str, Mapping[str, Outcome]]) -> str:
  """Returns the totals, the command and the versions as text."""
  natives = [by_runtime['native'] for by_runtime in outcomes.values()]
  passed = sum(list(o.results.values()).count('passed') for o in natives)
  num_differences = sum(
      len(differences(*(by_runtime[runtime] for runtime in RUNTIMES)))
      for by_runtime in outcomes.values()
  )
  versions = environments.collect()
  return (
      f"TFF's own tests, of {len(outcomes)} files: {passed} pass on TFF's "
      f'runtime, and {passed - num_differences} of these on the compiled one. '
      'Made by `python -m tools.tff_suite --checkout=FOLDER --output=FILE`, '
      f'with tff_adaptive {versions["tff_adaptive"]}, TFF '
      f'{versions["tensorflow-federated"]}, TensorFlow '
      f'{versions["tensorflow"]} and Python {versions["python"]}.'
  )


def _read_outcomes(
    results: Optional[pathlib.Path],
) -> dict[tuple[str, str], Outcome]:
  """Returns the outcomes of an earlier run, by test file and runtime."""
  if results is None or not results.is_file():
    return {}
  lines = results.read_text(encoding='utf-8').splitlines()
  return {
      (row['test'], row['context']): Outcome(row['results'], row['reasons'])
      for row in map(json.loads, lines)
  }


def _keep(
    results: Optional[pathlib.Path], test: str, context: str, outcome: Outcome
) -> None:
  """Adds an outcome to the file from which a later run resumes."""
  if results is not None:
    row = {'test': test, 'context': context, **dataclasses.asdict(outcome)}
    with results.open('a', encoding='utf-8') as file:
      file.write(f'{json.dumps(row)}\n')


def find_tests(
    checkout: pathlib.Path, patterns: Iterable[str] = _PATTERNS
) -> list[str]:
  """Returns the test files of a checkout, relative to it.

  Args:
    checkout: The folder.
    patterns: Patterns for `pathlib.Path.glob`.

  Returns:
    The sorted paths.

  Raises:
    SystemExit: If there are none.
  """
  found = {
      path.relative_to(checkout).as_posix()
      for pattern in patterns
      for path in checkout.glob(pattern)
  }
  if not found:
    sys.exit(f'{checkout} has no tests of TFF: expected {", ".join(patterns)}.')
  return sorted(found)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  add = parser.add_argument
  add('--checkout', type=pathlib.Path, required=True, help="TFF's checkout")
  add('--pattern', action='append', help='a glob pattern of test files')
  add('--output', type=pathlib.Path, help='the page to write')
  add('--results', type=pathlib.Path, help='keeps outcomes of files, to resume')
  add('--timeout', type=float, default=1800, help='seconds per file')
  add('--context', default='compiled', choices=RUNTIMES, help='for --run')
  add('--run', help='one file to run in this process')
  add('--xml_output_file', help=argparse.SUPPRESS)  # Of absltest, with --run.
  return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
  """Runs the tests; returns 1 if some pass only on TFF's runtime."""
  options = _parse(arguments)
  checkout = options.checkout.resolve()
  if options.run:
    sys.argv = [options.run, *(a for a in arguments if a.startswith('--xml'))]
    run_file(checkout, options.run, options.context)
    return 0
  known = _read_outcomes(options.results)
  outcomes: dict[str, dict[str, Outcome]] = {}
  for test in find_tests(checkout, options.pattern or _PATTERNS):
    outcomes[test] = {}
    for context in RUNTIMES:
      outcome = known.get((test, context))
      if outcome is None:
        outcome = run_in_process(checkout, test, context, options.timeout)
        _keep(options.results, test, context, outcome)
      outcomes[test][context] = outcome
      print(f'{test} {context}: {outcome.count()}', flush=True)
    if options.output:
      options.output.write_text(to_page(outcomes), encoding='utf-8')
  return int(any(differences(*o.values()) for o in outcomes.values()))


if __name__ == '__main__':
  sys.exit(main(sys.argv[1:]))
