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
"""What a page says, before it is Markdown or HTML.

Texts may have `code`, **bold** and [links](address); everything else in them is
shown as it is. No TensorFlow is imported here.
"""

from collections.abc import Sequence
import dataclasses
import pathlib
from typing import Union


@dataclasses.dataclass(frozen=True)
class Heading:
  """A heading below the title of the page."""

  text: str


@dataclasses.dataclass(frozen=True)
class Paragraph:
  """A few sentences."""

  text: str


@dataclasses.dataclass(frozen=True)
class Table:
  """A table.

  Attributes:
    header: The names of the columns.
    rows: The texts of the cells.
    num_labels: How many columns from the left are words; the others, numbers,
      stand to the right.
  """

  header: Sequence[str]
  rows: Sequence[Sequence[str]]
  num_labels: int = 1


@dataclasses.dataclass(frozen=True)
class Figure:
  """A picture.

  Attributes:
    path: The PNG file, in the folder of the page.
    caption: What it shows.
    command: What made it.
  """

  path: pathlib.Path
  caption: str
  command: str


@dataclasses.dataclass(frozen=True)
class Code:
  """Lines for a shell."""

  text: str


Block = Union[Heading, Paragraph, Table, Figure, Code]


@dataclasses.dataclass(frozen=True)
class Page:
  """A page.

  Attributes:
    title: Its title.
    blocks: What it says, from top to bottom.
  """

  title: str
  blocks: Sequence[Block]
