# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes the pages of the API reference, as Markdown for mkdocstrings.

Each public module has a page with a table of its names and their descriptions.
A name exported by several modules is described on one page and linked from the
others.
"""

from tools.docs import public_api

FOLDER = 'api'
INDEX = f'{FOLDER}/index.md'

# The docstring of the module, without its members.
_HEAD = """\
---
title: {short_name}
---

# {name}

::: {name}
    options:
      members: false
      show_root_heading: false
      show_root_toc_entry: false

| name | summary |
|---|---|
"""


def page_of(module: str) -> str:
  """Returns the path of the page of a module.

  Args:
    module: The name of the module, such as `tff_adaptive.optimizers`.
  """
  return f'{FOLDER}/{module.replace(".", "/", 1)}.md'


def build_pages() -> dict[str, str]:
  """Returns the texts of all pages by path."""
  modules = public_api.find_modules()
  described = public_api.find_described(modules)
  pages = {page_of(m.name): _render(m, described) for m in modules}
  return {INDEX: _render_index(modules), **pages}


def _render(module: public_api.PublicModule, described: dict[str, str]) -> str:
  short_name = module.name.partition('.')[2]
  parts = [_HEAD.format(name=module.name, short_name=short_name)]
  here = []
  for name, definition in module.names.items():
    target = described[definition.path]
    parts.append(f'| [`{name}`][{target}] | {_cell(definition.summary)} |\n')
    if target == f'{module.name}.{name}':
      here.append(f'\n::: {target}\n')
  return ''.join([*parts, *here])


def _render_index(modules: tuple[public_api.PublicModule, ...]) -> str:
  parts = [
      '# API reference\n\n'
      'The public names are those that the packages import and the modules '
      'define. All others are internal.\n'
  ]
  for package in public_api.PACKAGES:
    parts.append(f'\n## {package}\n\n| module | summary |\n|---|---|\n')
    for module in modules:
      if module.name.startswith(f'{package}.'):
        address = page_of(module.name)[len(FOLDER) + 1 :]
        summary = _cell(module.summary)
        parts.append(f'| [`{module.name}`]({address}) | {summary} |\n')
  return ''.join(parts)


def _cell(text: str) -> str:
  return text.replace('|', '\\|')
