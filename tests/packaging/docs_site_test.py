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
"""Tests of the documentation site, as `make docs` builds it."""

import html.parser
import os
import pathlib
import posixpath
import re
import subprocess
import tempfile
from urllib import parse

from absl.testing import absltest
import pytest

from tests import page_testing
from tools.docs import api_pages
from tools.docs import public_api

_ROOT = page_testing.ROOT
_MKDOCS = '.venv-docs/bin/python -m mkdocs'
# What a browser loads by itself: attributes by tags.
_LOADED = {
    'audio': 'src',
    'embed': 'src',
    'iframe': 'src',
    'img': 'src',
    'link': 'href',
    'object': 'data',
    'script': 'src',
    'source': 'src',
    'video': 'src',
}


class _Page(html.parser.HTMLParser):
  """What a page loads and links, and where it can be linked to."""

  def __init__(self, path: pathlib.Path):
    super().__init__()
    self.loaded: list[str] = []
    self.links: list[str] = []
    self.anchors: set[str] = set()
    self.text = path.read_text(encoding='utf-8')
    self.feed(self.text)

  def handle_starttag(self, tag, attrs):
    attributes = dict(attrs)
    self.anchors.add(attributes.get('id') or '')
    loaded = attributes.get(_LOADED.get(tag, ''))
    if loaded:
      self.loaded.append(loaded)
    if tag == 'a' and attributes.get('href'):
      self.links.append(attributes['href'])


def _reaches_packages() -> bool:
  """Whether pip reaches a package index."""
  command = 'python3 -m pip index versions mkdocs'
  return page_testing.run(command, _ROOT).returncode == 0


def _build(folder: str) -> subprocess.CompletedProcess:
  """Builds the site as `make docs` does, where no network can be reached."""
  environment = {
      **os.environ,
      'NO_MKDOCS_2_WARNING': '1',
      'http_proxy': 'http://127.0.0.1:9',
      'https_proxy': 'http://127.0.0.1:9',
  }
  return subprocess.run(
      [*_MKDOCS.split(), 'build', '--strict', '--site-dir', folder],
      cwd=_ROOT,
      env=environment,
      check=False,
      capture_output=True,
      text=True,
  )


@pytest.mark.slow
class SiteTest(absltest.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    made = page_testing.run('make .venv-docs', _ROOT)
    if made.returncode and not _reaches_packages():
      raise absltest.SkipTest('No package index can be reached for .venv-docs.')
    if made.returncode:
      raise AssertionError(made.stderr)
    folder = cls.enterClassContext(tempfile.TemporaryDirectory())
    cls.site = pathlib.Path(folder)
    cls.process = _build(folder)
    cls.pages = {
        path.relative_to(folder).as_posix(): _Page(path)
        for path in sorted(cls.site.rglob('*.html'))
    }

  def test_builds_without_warnings(self):
    self.assertEqual(self.process.returncode, 0, self.process.stderr)
    self.assertEmpty(self.process.stdout)
    self.assertNotIn('WARNING', self.process.stderr)

  def test_makefile_builds_it_the_same_way(self):
    makefile = page_testing.read('Makefile')
    self.assertIn(f'NO_MKDOCS_2_WARNING=1 {_MKDOCS}\n', makefile)
    self.assertIn('$(MKDOCS) build --strict\n', makefile)

  def test_loads_nothing_from_elsewhere(self):
    self.assertNotEmpty(self.pages)
    for name, page in self.pages.items():
      for address in page.loaded:
        self.assertNotRegex(address, r'^(https?:)?//', name)
      # The theme would load a library to draw these.
      self.assertNotIn('class="mermaid"', page.text, name)
    for path in self.site.rglob('*.css'):
      style = path.read_text(encoding='utf-8')
      self.assertNotRegex(style, r'(url\(|@import)\s*["\']?(https?:)?//')

  def test_links_between_pages_lead_somewhere(self):
    for name, page in self.pages.items():
      if name == '404.html':
        continue  # Its links are for the root of a server.
      for address in page.links + page.loaded:
        parts = parse.urlsplit(address)
        if parts.scheme or parts.netloc:
          continue
        target = name
        if parts.path:
          path = parse.unquote(parts.path)
          target = posixpath.normpath(
              posixpath.join(posixpath.dirname(name), path)
          )
        self.assertTrue((self.site / target).is_file(), f'{name}: {address}')
        if parts.fragment and target in self.pages:
          anchors = self.pages[target].anchors
          self.assertIn(parse.unquote(parts.fragment), anchors, name)

  def test_reference_has_every_public_name(self):
    modules = public_api.find_modules()
    described = public_api.find_described(modules)
    for module in modules:
      page = self.pages[api_pages.page_of(module.name)[:-3] + '.html']
      for name, definition in module.names.items():
        if described[definition.path] == f'{module.name}.{name}':
          self.assertIn(f'{module.name}.{name}', page.anchors)
        else:
          self.assertIn(f'<code>{name}</code>', page.text)

  def test_names_in_pages_lead_to_the_reference(self):
    self.assertIn(
        'api/tff_adaptive/optimizers.html#tff_adaptive.optimizers.build_sgd',
        self.pages['index.html'].links,
    )

  def test_data_classes_and_constants_are_described(self):
    for module, name, expected in (
        ('privacy', 'DifferentialPrivacy', 'noise_multiplier: float,'),
        (
            'simulation.client_evaluation',
            'PersonalizedMetrics',
            'PersonalizedMetrics(',
        ),
        ('data.partition', 'Sizes', 'One number for all clients'),
    ):
      page = self.pages[f'api/tff_adaptive/{module}.html'].text
      start = page.index(f'id="tff_adaptive.{module}.{name}"')
      text = re.sub(r'<[^>]*>', '', page[start : start + 5000])
      self.assertIn(expected, text)

  def test_formulas_and_examples_are_code(self):
    page = self.pages['api/tff_adaptive/optimizers.html'].text
    # A prompt outside of a block would be a quotation.
    self.assertNotIn('<blockquote>', page)
    self.assertNotRegex(re.sub(r'<pre.*?</pre>', '', page, flags=re.S), r'```')


if __name__ == '__main__':
  absltest.main()
