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
"""Writes the Bazel `BUILD` file from the Python files of the tree.

`python tools/generate_build.py` writes it, with `--check` it only says whether
it is up to date. A target is named after its file, without the `.py`:

*   every module is a `py_library`, with the modules of this repository that it
    imports as `deps` and the other packages in a comment;
*   every `*_test.py` is a `py_test`;
*   every module that can be run is a `py_binary` too, named `..._main`.
"""

import argparse
import ast
from collections.abc import Iterator
import pathlib
import re
import sys
from typing import NamedTuple

# The build runs on the lock's Python, the type check is for the oldest.
_STDLIB = sys.stdlib_module_names  # type: ignore[attr-defined]
_ROOTS = ('tff_adaptive', 'tasks', 'experiments', 'tests', 'tools')
_LICENCE_LINES = 13
_PREAMBLE = """\
# Written by `make build`; edits are lost.

load("@rules_python//python:defs.bzl", "py_binary", "py_library", "py_test")

package(default_visibility = ["//visibility:public"])

licenses(["notice"])
"""
_STALE = 'BUILD is not what the tree asks for ({}): run `make build`.'


class Target(NamedTuple):
  """A target of the BUILD file.

  Attributes:
    rule: `py_library`, `py_test` or `py_binary`.
    name: The name of the target.
    source: The path of the module, relative to the root of the tree.
    deps: The names of the targets that it imports.
    third_party: The packages that it imports from outside the repository.
    testonly: Whether only tests may depend on it.
  """

  rule: str
  name: str
  source: str
  deps: tuple[str, ...] = ()
  third_party: tuple[str, ...] = ()
  testonly: bool = False


def find_modules(root: pathlib.Path) -> list[str]:
  """Returns the names of all modules, such as `tff_adaptive/doctor`.

  Args:
    root: The root of the tree.

  Returns:
    The paths of the Python files without their suffix, sorted.
  """
  modules = []
  for folder in _ROOTS:
    for path in (root / folder).rglob('*.py'):
      modules.append(path.relative_to(root).with_suffix('').as_posix())
  return sorted(modules)


def _imported_names(tree: ast.AST, module: str) -> Iterator[str]:
  """Yields dotted names that `module` imports, `a.b.c` for `from a.b ...`."""
  package = module.split('/')[:-1]
  for node in ast.walk(tree):
    if isinstance(node, ast.Import):
      yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
      parent = node.module or ''
      if node.level:
        above = package[: len(package) - node.level + 1]
        parent = '.'.join(above + ([parent] if parent else []))
      yield from (f'{parent}.{alias.name}' for alias in node.names)


def _resolve(name: str, modules: frozenset[str]) -> str:
  """Returns the module that holds a dotted name, '' if none of ours does."""
  parts = name.split('.')
  for length in range(len(parts), 0, -1):
    path = '/'.join(parts[:length])
    for candidate in (path, f'{path}/__init__'):
      if candidate in modules:
        return candidate
  return ''


def _find_deps(
    tree: ast.AST, module: str, modules: frozenset[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
  """Returns the targets and the third-party packages that a module imports."""
  deps, third_party = set(), set()
  for name in _imported_names(tree, module):
    owner = _resolve(name, modules)
    top = name.split('.')[0]
    if owner:
      deps.add(owner)
    elif top not in _STDLIB and top not in _ROOTS:
      third_party.add(top)
  deps.discard(module)
  return tuple(sorted(deps)), tuple(sorted(third_party))


def _has_main_guard(tree: ast.Module) -> bool:
  return any(
      isinstance(node, ast.If) and '__name__' in ast.dump(node.test)
      for node in tree.body
  )


def _targets_of(
    root: pathlib.Path, module: str, modules: frozenset[str]
) -> Iterator[Target]:
  """Yields the targets of one module."""
  source = f'{module}.py'
  tree = ast.parse((root / source).read_text(encoding='utf-8'), source)
  deps, third_party = _find_deps(tree, module, modules)
  in_tests = module.startswith('tests/')
  if in_tests and module.endswith('_test'):
    yield Target('py_test', module, source, deps, third_party)
    return
  yield Target('py_library', module, source, deps, third_party, in_tests)
  if _has_main_guard(tree):
    yield Target('py_binary', f'{module}_main', source, (module,))


def find_targets(root: pathlib.Path) -> list[Target]:
  """Returns the targets of all modules, in the order of the BUILD file.

  Args:
    root: The root of the tree.
  """
  modules = find_modules(root)
  known = frozenset(modules)
  return [t for module in modules for t in _targets_of(root, module, known)]


def _render(target: Target) -> str:
  """Returns a target as Bazel writes it."""
  lines = [
      f'{target.rule}(',
      f'    name = "{target.name}",',
  ]
  if target.testonly:
    lines.append('    testonly = True,')
  lines.append(f'    srcs = ["{target.source}"],')
  if target.rule == 'py_binary':
    lines.append(f'    main = "{target.source}",')
  if target.deps or target.third_party:
    lines.append('    deps = [')
    lines.extend(f'        # {name} dependency,' for name in target.third_party)
    lines.extend(f'        ":{name}",' for name in target.deps)
    lines.append('    ],')
  return '\n'.join(lines + [')', ''])


def render_build(root: pathlib.Path) -> str:
  """Returns the text that the BUILD file should have.

  Args:
    root: The root of the tree.
  """
  own_lines = pathlib.Path(__file__).read_text(encoding='utf-8').splitlines()
  licence = '\n'.join(own_lines[:_LICENCE_LINES]) + '\n'
  blocks = [licence + _PREAMBLE]
  blocks.extend(_render(target) for target in find_targets(root))
  return '\n'.join(blocks)


def find_problem(root: pathlib.Path) -> str:
  """Compares the BUILD file with the tree.

  Args:
    root: The root of the tree.

  Returns:
    A sentence that names the targets that are missing or too many, empty if
    the file is up to date.
  """
  path = root / 'BUILD'
  text = path.read_text(encoding='utf-8') if path.exists() else ''
  if text == render_build(root):
    return ''
  named = set(re.findall(r'^    name = "(.*)",$', text, re.MULTILINE))
  wanted = {target.name for target in find_targets(root)}
  causes = [f'no target "{name}"' for name in sorted(wanted - named)]
  causes += [f'no module for "{name}"' for name in sorted(named - wanted)]
  return _STALE.format(', '.join(causes) or 'its text differs')


def main(argv: list[str]) -> int:
  """Writes or checks the BUILD file.

  Args:
    argv: The arguments of the command line, without the program.

  Returns:
    The exit status: 1 if `--check` finds the file out of date, 0 otherwise.
  """
  parser = argparse.ArgumentParser(description='Writes the Bazel BUILD file.')
  parser.add_argument('--check', action='store_true', help='write nothing')
  parser.add_argument(
      '--root',
      type=pathlib.Path,
      default=pathlib.Path(__file__).resolve().parents[1],
      help='the root of the tree',
  )
  arguments = parser.parse_args(argv)
  if not arguments.check:
    text = render_build(arguments.root)
    (arguments.root / 'BUILD').write_text(text, encoding='utf-8')
    return 0
  problem = find_problem(arguments.root)
  if problem:
    print(problem, file=sys.stderr)
  return 1 if problem else 0


if __name__ == '__main__':
  sys.exit(main(sys.argv[1:]))
