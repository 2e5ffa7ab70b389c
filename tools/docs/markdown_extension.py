# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A Markdown extension that turns pages of a code host into pages of the site.

Links to files and folders of the project that are not pages become plain text,
and links to a folder with a page lead to that page. API names in `code` link to
their descriptions. Table cells with long text get a class, so that the style
keeps them wide enough.
"""

import functools
import pathlib
import posixpath
import re
from typing import Any, Optional
from urllib import parse
from xml.etree import ElementTree

import markdown
from markdown import treeprocessors

from tools.docs import api_pages
from tools.docs import example_pages
from tools.docs import public_api

_ROOT = pathlib.Path(__file__).resolve().parents[2]
# After the inline patterns (20), before MkDocs resolves links (0).
_PRIORITY = 2
# Elements in which code is not linked: links, headings and blocks.
_LEFT_ALONE = ('a', 'autoref', 'pre', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6')
# The number of characters from which the text of a cell is long.
_LONG_TEXT = 30
_NAME = re.compile(r'([A-Za-z_][\w.]*)(\(.*\))?', re.S)


class SiteExtension(markdown.Extension):
  """Registers the processors."""

  def extendMarkdown(self, md: markdown.Markdown) -> None:
    """Registers the processors with a converter."""
    md.treeprocessors.register(_ProjectLinks(md), 'project_links', _PRIORITY)
    md.treeprocessors.register(_NameLinks(md), 'name_links', _PRIORITY)
    md.treeprocessors.register(_LongCells(md), 'long_cells', _PRIORITY)


def makeExtension(**kwargs: Any) -> SiteExtension:
  """Returns the extension; called by Python-Markdown."""
  return SiteExtension(**kwargs)


class _ProjectLinks(treeprocessors.Treeprocessor):
  """Fixes links to files of the project that are not on the site."""

  def run(self, root: ElementTree.Element) -> None:
    if 'relpath' not in self.md.treeprocessors:
      return  # The text is a docstring, not a page.
    relpath = self.md.treeprocessors['relpath']
    pages = {file.src_uri for file in relpath.files}
    for element in root.iter('a'):
      address = element.get('href', '')
      mended = mend_link(address, relpath.file.src_uri, pages)
      if mended is None:
        element.tag = 'span'
        element.attrib.clear()
      else:
        element.set('href', mended)


def mend_link(address: str, page: str, pages: set[str]) -> Optional[str]:
  """Returns the address of a link on the site.

  Args:
    address: The address of the link.
    page: The path of the page in the project.
    pages: The paths of all files of the site.

  Returns:
    The address, or the address of a folder's page; None for files of the
    project that are not on the site.
  """
  parts = parse.urlsplit(address)
  if parts.scheme or parts.netloc or not parts.path:
    return address
  folder = posixpath.dirname(page)
  target = posixpath.normpath(posixpath.join(folder, parse.unquote(parts.path)))
  example = example_pages.page_of(target)
  if example != target and example in pages:
    return posixpath.relpath(example, folder)
  if target in pages or not (_ROOT / target).exists():
    return address
  if f'{target}/README.md' in pages:
    fragment = f'#{parts.fragment}' if parts.fragment else ''
    return posixpath.relpath(f'{target}/README.md', folder) + fragment
  return None


class _LongCells(treeprocessors.Treeprocessor):
  """Marks table cells with long text."""

  def run(self, root: ElementTree.Element) -> None:
    for cell in root.iter('td'):
      if len(''.join(cell.itertext())) >= _LONG_TEXT:
        cell.set('class', 'long')


class _NameLinks(treeprocessors.Treeprocessor):
  """Links API names to their descriptions."""

  def run(self, root: ElementTree.Element) -> None:
    is_api = True
    if 'relpath' in self.md.treeprocessors:
      page = self.md.treeprocessors['relpath'].file.src_uri
      is_api = page.startswith(f'{api_pages.FOLDER}/')
    self._link(root, is_api)

  def _link(self, parent: ElementTree.Element, is_api: bool) -> None:
    for i, child in enumerate(list(parent)):
      if child.tag == 'code':
        target = find_target(''.join(child.itertext()), is_api)
        if target is not None:
          parent[i] = _refer(child, target)
      elif child.tag not in _LEFT_ALONE:
        self._link(child, is_api)


def _refer(code: ElementTree.Element, target: str) -> ElementTree.Element:
  """Wraps code in a reference that mkdocs-autorefs resolves."""
  reference = ElementTree.Element('autoref', identifier=target, optional='')
  reference.tail, code.tail = code.tail, None
  reference.append(code)
  return reference


def find_target(code: str, is_api: bool) -> Optional[str]:
  """Returns the API name that some code mentions.

  Args:
    code: The code, such as `optimizers.build_sgd(momentum=0.9)`.
    is_api: Whether it is in the API reference, which mentions builders and
      classes without their modules.

  Returns:
    The full name under which it is described; None if the code is not an API
    name.
  """
  match = _NAME.fullmatch(code.strip())
  if match is None:
    return None
  qualified, bare = _targets()
  name = match[1]
  if name in qualified:
    return qualified[name]
  return bare.get(name) if is_api else None


def forget() -> None:
  """Clears the cached API names."""
  _targets.cache_clear()


@functools.lru_cache(maxsize=None)
def _targets() -> tuple[dict[str, str], dict[str, str]]:
  """Returns the targets of names with and without a module."""
  modules = public_api.find_modules()
  described = public_api.find_described(modules)
  qualified: dict[str, str] = {}
  candidates: dict[str, set[str]] = {}
  for module in modules:
    _add_suffixes(module.name, module.name, qualified)
    for name, definition in module.names.items():
      target = described[definition.path]
      _add_suffixes(f'{module.name}.{name}', target, qualified)
      candidates.setdefault(name, set()).add(target)
  bare = {
      name: next(iter(targets))
      for name, targets in candidates.items()
      # A single lower-case word may be an argument.
      if len(targets) == 1 and ('_' in name or name != name.lower())
  }
  return qualified, bare


def _add_suffixes(path: str, target: str, qualified: dict[str, str]) -> None:
  """Adds `a.b.c` and `b.c`, but not `c`."""
  while '.' in path:
    qualified.setdefault(path, target)
    path = path.partition('.')[2]
