# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A Markdown extension: what a page of a code host needs to be one of the site.

Links to files and folders of the project that are no pages become plain text;
those to a folder with a page lead to that page. Names of the API that stand as
`code` lead to their description. Cells of tables with much text are marked, for
the style to keep them wide enough.
"""

import functools
import pathlib
import posixpath
import re
from typing import Any, Optional
from urllib import parse
from xml.etree import ElementTree

import markdown  # type: ignore[import-untyped]
from markdown import treeprocessors

from tools.docs import api_pages
from tools.docs import public_api

_ROOT = pathlib.Path(__file__).resolve().parents[2]
# After the inline patterns (20), before MkDocs looks for the pages (0).
_PRIORITY = 2
# In these, code is no mention of a name: it is a link, a heading, a block.
_LEFT_ALONE = ('a', 'autoref', 'pre', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6')
# From so many characters on, a cell has much text.
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
  """Returns the extension, as Python-Markdown asks for it."""
  return SiteExtension(**kwargs)


class _ProjectLinks(treeprocessors.Treeprocessor):
  """Mends links to what is in the project and not on the site."""

  def run(self, root: ElementTree.Element) -> None:
    if 'relpath' not in self.md.treeprocessors:
      return  # Not the text of a page, but of a docstring.
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


def mend_link(
    address: str, page: str, pages: set[str], root: pathlib.Path = _ROOT
) -> Optional[str]:
  """Returns where a link of a page leads on the site.

  Args:
    address: The address of the link.
    page: The path of the page in the project.
    pages: The paths of all files of the site.
    root: The folder of the project; by default of this one.

  Returns:
    The address, or that of the page of a folder; None for what is in the
    project and not on the site.
  """
  parts = parse.urlsplit(address)
  if parts.scheme or parts.netloc or not parts.path:
    return address
  folder = posixpath.dirname(page)
  target = posixpath.normpath(posixpath.join(folder, parse.unquote(parts.path)))
  if target in pages or not (root / target).exists():
    return address
  if f'{target}/README.md' in pages:
    return posixpath.relpath(f'{target}/README.md', folder)
  return None


class _LongCells(treeprocessors.Treeprocessor):
  """Marks cells with much text."""

  def run(self, root: ElementTree.Element) -> None:
    for cell in root.iter('td'):
      if len(''.join(cell.itertext())) >= _LONG_TEXT:
        cell.set('class', 'long')


class _NameLinks(treeprocessors.Treeprocessor):
  """Lets names of the API lead to their description."""

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
  """Returns code in a reference that mkdocs-autorefs resolves."""
  reference = ElementTree.Element('autoref', identifier=target, optional='')
  reference.tail, code.tail = code.tail, None
  reference.append(code)
  return reference


def find_target(code: str, is_api: bool) -> Optional[str]:
  """Returns the name of the API that some code mentions.

  Args:
    code: The code, such as `optimizers.build_sgd(momentum=0.9)`.
    is_api: Whether it stands in the API reference, where builders and classes
      are mentioned without their module.

  Returns:
    The name with all of its modules, under which it is described; None if the
    code is something else.
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
  """Forgets the names of the API, for files that have changed since."""
  _targets.cache_clear()


@functools.lru_cache(maxsize=None)
def _targets() -> tuple[dict[str, str], dict[str, str]]:
  """Returns what names with and without a module stand for."""
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
      # A single word in lower case may well be an argument.
      if len(targets) == 1 and ('_' in name or name != name.lower())
  }
  return qualified, bare


def _add_suffixes(path: str, target: str, qualified: dict[str, str]) -> None:
  """Adds `a.b.c` and `b.c`, but not `c`."""
  while '.' in path:
    qualified.setdefault(path, target)
    path = path.partition('.')[2]
