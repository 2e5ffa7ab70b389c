# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks what a wheel says of itself before it is released.

`python tools/check_release.py WHEEL` reads its metadata and compares them with
the tree around this file. The newest entry of CHANGELOG.md, the first one that
is not empty, is either `## Unreleased`, which makes it a trial, or
`## VERSION - YYYY-MM-DD` with the version of the library.
"""

import pathlib
import re
import sys
import zipfile

from packaging import metadata

_UNRELEASED = 'Unreleased'


def _read_version(root: pathlib.Path) -> str:
  """Returns the version in the sources of the library."""
  text = (root / 'tff_adaptive/__init__.py').read_text(encoding='utf-8')
  (version,) = re.findall(r"^__version__ = '(.+)'$", text, re.MULTILINE)
  return version


def _find_newest_entry(changelog: str) -> str:
  """Returns the heading of the newest entry, empty if there is none."""
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
    A part of a sentence; empty if nothing is wrong.
  """
  heading = _find_newest_entry(changelog)
  date = r'\d{4}-\d{2}-\d{2}'
  if heading == _UNRELEASED or re.fullmatch(
      f'{re.escape(version)} - {date}', heading
  ):
    return ''
  return (
      f'the newest entry of CHANGELOG.md is {heading!r}, but must be '
      f'{_UNRELEASED!r} or {version + " - YYYY-MM-DD"!r}'
  )


def find_problems(wheel: pathlib.Path, root: pathlib.Path) -> list[str]:
  """Compares the metadata of a wheel with the tree that it was built from.

  Args:
    wheel: The wheel.
    root: The root of the tree.

  Returns:
    What is wrong, a part of a sentence each; empty if nothing is.
  """
  with zipfile.ZipFile(wheel) as archive:
    (name,) = [
        n for n in archive.namelist() if n.endswith('.dist-info/METADATA')
    ]
    # Raises for what an index would refuse.
    found = metadata.Metadata.from_email(archive.read(name))
    licences = [
        archive.read(n).decode('utf-8')
        for n in archive.namelist()
        if n.endswith('/LICENSE')
    ]
  read = lambda name: (root / name).read_text(encoding='utf-8')
  version = _read_version(root)
  problems = [
      f'its {field} is {value!r}, but must be {expected!r}'
      for field, value, expected in (
          ('name', found.name, 'tff_adaptive'),
          ('version', str(found.version), version),
          ('type', found.description_content_type, 'text/markdown'),
      )
      if value != expected
  ]
  if (found.description or '').strip() != read('README.md').strip():
    problems.append('its description is not README.md')
  if licences != [read('LICENSE')]:
    problems.append('it does not hold LICENSE')
  changelog_problem = find_changelog_problem(read('CHANGELOG.md'), version)
  return problems + ([changelog_problem] if changelog_problem else [])


def main():
  """Checks the wheel that the command line names."""
  root = pathlib.Path(__file__).resolve().parents[1]
  wheel = pathlib.Path(sys.argv[1])
  problems = find_problems(wheel, root)
  if problems:
    sys.exit(f'{wheel.name} cannot be released: {"; ".join(problems)}.')
  heading = _find_newest_entry((root / 'CHANGELOG.md').read_text('utf-8'))
  trial = ', so this is a trial' if heading == _UNRELEASED else ''
  print(f'version: {_read_version(root)}')
  print(f'CHANGELOG.md: {heading}{trial}')


if __name__ == '__main__':
  main()
