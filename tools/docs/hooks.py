# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""MkDocs hooks, which define the pages of the site.

The paths of pages are those of the project's files, so that relative links work
alike on the site and on a code host.
"""

import pathlib

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

from tools.docs import api_pages
from tools.docs import example_pages
from tools.docs import markdown_extension
from tools.docs import page_tree
from tools.docs import public_api


def on_pre_build(config: MkDocsConfig) -> None:
  """Clears caches, since `make docs-serve` builds more than once."""
  del config  # Unused.
  public_api.forget()
  markdown_extension.forget()


def on_files(files: Files, config: MkDocsConfig) -> Files:
  """Adds the pages outside of docs/, of the API and of the examples."""
  root = pathlib.Path(config.config_file_path).parent
  in_docs = [file for file in files if file.src_dir == config.docs_dir]
  for file in in_docs:
    files.remove(file)
    if file.inclusion.is_included():
      files.append(_in_project(page_tree.DOCS + file.src_uri, root, config))
  for path in page_tree.find_outside(config.nav, root):
    files.append(_in_project(path, root, config))
  for path, text in api_pages.build_pages().items():
    files.append(File.generated(config, path, content=text))
  for path, content in example_pages.build_pages(root).items():
    file = File.generated(config, path, content=content)
    file.dest_uri = page_tree.site_path(file.dest_uri)
    files.append(file)
  pages = [file.src_uri for file in files.documentation_pages()]
  config.nav = page_tree.expand(config.nav, pages)
  return files


def on_page_markdown(
    markdown: str, page: Page, config: MkDocsConfig, files: Files
) -> str:
  """Hides the navigation of a page that is alone in its tab."""
  del config, files  # Unused.
  if page.parent is None:
    page.meta['hide'] = ['navigation']
  return markdown


def _in_project(path: str, root: pathlib.Path, config: MkDocsConfig) -> File:
  """Returns a file whose path on the site is that in the project."""
  file = File(path, str(root), config.site_dir, config.use_directory_urls)
  file.dest_uri = page_tree.site_path(file.dest_uri)
  return file
