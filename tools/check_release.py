# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks the metadata of a wheel before its release.

`python tools/check_release.py WHEEL` compares them with the tree around this
file. The newest non-empty entry of CHANGELOG.md must be `## Unreleased`, for a
trial, or `## VERSION - YYYY-MM-DD` with the version of the library.
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
  """Returns the heading of the newest non-empty entry, or an empty text."""
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
    The problem as part of a sentence; empty if there is none.
  """
  heading = _find_newest_entry(changelog)
  date = r'\d{4}-\d{2}-\d{2}'
  if heading == _UNRELEASED or re.fullmatch(
      f'{re.escape(version)} - {date}', heading
  ):
    return ''
  return (
      f'the newest entry of CHANGELOG.md must be {_UNRELEASED!r} or '
      f'{version + " - YYYY-MM-DD"!r}, found {heading!r}'
  )


def find_problems(wheel: pathlib.Path, root: pathlib.Path) -> list[str]:
  """Compares the metadata of a wheel with the tree from which it was built.

  Args:
    wheel: The wheel.
    root: The root of the tree.

  Returns:
    The problems as parts of a sentence; empty if there are none.
  """
  with zipfile.ZipFile(wheel) as archive:
    (name,) = [
        n for n in archive.namelist() if n.endswith('.dist-info/METADATA')
    ]
    # Raises if an index would reject the metadata.
    found = metadata.Metadata.from_email(archive.read(name))
    licences = [
        archive.read(n).decode('utf-8')
        for n in archive.namelist()
        if n.endswith('/LICENSE')
    ]
  read = lambda name: (root / name).read_text(encoding='utf-8')
  version = _read_version(root)
  problems = [
      f'its {field} must be {expected!r}, found {value!r}'
      for field, value, expected in (
          ('name', found.name, 'tff_adaptive'),
          ('version', str(found.version), version),
          ('type', found.description_content_type, 'text/markdown'),
      )
      if value != expected
  ]
  if (found.description or '').strip() != read('README.md').strip():
    problems.append('its description differs from README.md')
  if licences != [read('LICENSE')]:
    problems.append('it does not contain LICENSE')
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
