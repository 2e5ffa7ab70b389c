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
"""Checks what a wheel says of itself before it is released.

`python tools/check_release.py WHEEL` compares it with the tree around this
file. The newest entry of CHANGELOG.md, the first one that is not empty, is
either `## Unreleased`, which makes it a trial, or `## VERSION - YYYY-MM-DD`
with the version of the library.
"""

import argparse
import email.message
import email.parser
import pathlib
import re
import sys
import zipfile

_NAME = 'tff_adaptive'
_UNRELEASED = 'Unreleased'
_DESCRIPTION_TYPE = 'text/markdown'


def read_version(root: pathlib.Path) -> str:
  """Returns the version in the sources of the library.

  Args:
    root: The root of the tree.
  """
  text = (root / _NAME / '__init__.py').read_text(encoding='utf-8')
  (version,) = re.findall(r"^__version__ = '(.+)'$", text, re.MULTILINE)
  return version


def find_newest_entry(changelog: str) -> str:
  """Returns the heading of the newest entry, empty if there is none.

  Args:
    changelog: The text of CHANGELOG.md.

  Example:

    >>> find_newest_entry('## Unreleased\\n\\n## 0.1.0 - 2026-11-30\\n* New.')
    '0.1.0 - 2026-11-30'
  """
  sections = re.split(r'^## (.*)$', changelog, flags=re.MULTILINE)[1:]
  for heading, text in zip(sections[::2], sections[1::2]):
    if text.strip():
      return heading.strip()
  return ''


def find_changelog_problem(changelog: str, version: str) -> str:
  """Compares the changelog with the version.

  Args:
    changelog: The text of CHANGELOG.md.
    version: The version of the library.

  Returns:
    What is wrong with it, empty if nothing is.
  """
  heading = find_newest_entry(changelog)
  date = r'\d{4}-\d{2}-\d{2}'
  if heading == _UNRELEASED or re.fullmatch(
      f'{re.escape(version)} - {date}', heading
  ):
    return ''
  return (
      f'the newest entry of CHANGELOG.md is {heading!r}, but must be '
      f'{_UNRELEASED!r} or {version + " - YYYY-MM-DD"!r}'
  )


class _Wheel:
  """What is in a wheel.

  Attributes:
    names: The names of all files.
    metadata: Its METADATA.
    licences: The texts of its licence files.
  """

  def __init__(self, path: pathlib.Path):
    with zipfile.ZipFile(path) as archive:
      self.names = archive.namelist()
      texts = {
          name: archive.read(name).decode('utf-8')
          for name in self.names
          if '.dist-info/' in name
      }
    (metadata,) = [t for n, t in texts.items() if n.endswith('/METADATA')]
    self.metadata: email.message.Message = email.parser.Parser().parsestr(
        metadata
    )
    self.licences = [t for n, t in texts.items() if n.endswith('/LICENSE')]


def find_problems(wheel_path: pathlib.Path, root: pathlib.Path) -> list[str]:
  """Compares a wheel with the tree that it was built from.

  Args:
    wheel_path: The wheel.
    root: The root of the tree.

  Returns:
    What is wrong, a part of a sentence each; empty if nothing is.
  """
  wheel = _Wheel(wheel_path)
  version = read_version(root)
  readme = (root / 'README.md').read_text(encoding='utf-8')
  licence = (root / 'LICENSE').read_text(encoding='utf-8')
  modules = {
      path.relative_to(root).as_posix() for path in (root / _NAME).rglob('*.py')
  }
  # The hook is beside the library, and within it for the sdist.
  modules |= {f'{_NAME}.pth', f'{_NAME}/_import_hook.pth'}
  packed = {name for name in wheel.names if '.dist-info/' not in name}
  problems = []
  for field, expected in (
      ('Name', _NAME),
      ('Version', version),
      ('Description-Content-Type', _DESCRIPTION_TYPE),
  ):
    if wheel.metadata[field] != expected:
      problems.append(
          f'its {field} is {wheel.metadata[field]!r}, but must be {expected!r}'
      )
  if str(wheel.metadata.get_payload()).strip() != readme.strip():
    problems.append('its description is not README.md')
  if wheel.licences != [licence]:
    problems.append('it does not hold LICENSE')
  problems += [f'it lacks {name}' for name in sorted(modules - packed)]
  problems += [f'{name} is too many' for name in sorted(packed - modules)]
  changelog = (root / 'CHANGELOG.md').read_text(encoding='utf-8')
  changelog_problem = find_changelog_problem(changelog, version)
  return problems + ([changelog_problem] if changelog_problem else [])


def main(argv: list[str]) -> int:
  """Checks a wheel and says what it is, or what is wrong.

  Args:
    argv: The arguments of the command line, without the program.

  Returns:
    The exit status: 1 if something is wrong, 0 otherwise.
  """
  parser = argparse.ArgumentParser(description='Checks a wheel.')
  parser.add_argument('wheel', type=pathlib.Path)
  parser.add_argument(
      '--root',
      type=pathlib.Path,
      default=pathlib.Path(__file__).resolve().parents[1],
      help='the root of the tree',
  )
  arguments = parser.parse_args(argv)
  problems = find_problems(arguments.wheel, arguments.root)
  if problems:
    print(
        f'{arguments.wheel.name} cannot be released: {"; ".join(problems)}.',
        file=sys.stderr,
    )
    return 1
  changelog = (arguments.root / 'CHANGELOG.md').read_text(encoding='utf-8')
  heading = find_newest_entry(changelog)
  trial = ', so this is a trial' if heading == _UNRELEASED else ''
  print(f'version: {read_version(arguments.root)}')
  print(f'CHANGELOG.md: {heading}{trial}')
  print('wheel: name, version, description, licence and modules are right')
  return 0


if __name__ == '__main__':
  sys.exit(main(sys.argv[1:]))
