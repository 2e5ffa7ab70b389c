# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The pages of the site among the project's files, and their order."""

from collections.abc import Iterable, Iterator
import fnmatch
import pathlib
import re
from typing import Any

DOCS = 'docs/'


def site_path(path: str) -> str:
  """Returns the path of a file on the site.

  Args:
    path: Its path in the project, from which only docs/ is stripped.
  """
  return path[len(DOCS) :] if path.startswith(DOCS) else path


def find_outside(navigation: Any, root: pathlib.Path) -> list[str]:
  """Returns the existing pages outside of docs/.

  Args:
    navigation: The `nav` of mkdocs.yml, whose entries are paths in the project
      or patterns.
    root: The folder of the project.
  """
  return [
      path.relative_to(root).as_posix()
      for entry in _leaves(navigation)
      if not entry.startswith(DOCS)
      for path in sorted(root.glob(entry))
  ]


def expand(navigation: Any, pages: Iterable[str]) -> Any:
  """Expands the patterns of the navigation to pages.

  Args:
    navigation: The `nav` of mkdocs.yml.
    pages: The paths of all pages.

  Returns:
    The navigation. A pattern is replaced by the matching pages that no entry
    names; a section without pages is dropped.
  """
  named = set(_leaves(navigation))
  return _expand(navigation, sorted(set(pages) - named, key=_in_order))


def _leaves(navigation: Any) -> Iterator[str]:
  """Yields the paths and patterns, from top to bottom."""
  if isinstance(navigation, str):
    yield navigation
  else:
    values = navigation.values() if isinstance(navigation, dict) else navigation
    for value in values:
      yield from _leaves(value)


def _expand(entry: Any, unnamed: list[str]) -> Any:
  if isinstance(entry, dict):
    ((title, value),) = entry.items()
    if isinstance(value, str) and '*' in value:
      value = [value]
    value = _expand(value, unnamed)
    return {title: value} if value else None
  if isinstance(entry, str):
    return entry
  entries: list[Any] = []
  for item in entry:
    if isinstance(item, str) and '*' in item:
      matches = fnmatch.filter(unnamed, item)
      unnamed[:] = [page for page in unnamed if page not in matches]
      entries.extend(matches)
    else:
      expanded = _expand(item, unnamed)
      if expanded is not None:
        entries.append(expanded)
  return entries


def _in_order(path: str) -> list[Any]:
  """Returns a key that puts `table_2` before `table_10`."""
  parts = re.split(r'(\d+)', path.removesuffix('.md'))
  return [int(part) if part.isdigit() else part for part in parts]
