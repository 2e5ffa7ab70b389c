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
"""CSV files that runs write, also while they are being written."""

from collections.abc import Iterator
import csv
import io
import os
from typing import Union


class DamagedCSVError(ValueError):
  """A file is no CSV file; the text says why.

  Attributes:
    line_num: The line where that was noticed.
  """

  def __init__(self, reason: object, line_num: int):
    super().__init__(str(reason))
    self.line_num = line_num


def read_lines(
    path: Union[str, os.PathLike],
) -> Iterator[tuple[int, list[str]]]:
  """Yields the lines that hold fields, the header first.

  A last line without its end is not there yet.

  Args:
    path: The file.

  Yields:
    The number of a line, and its fields.

  Raises:
    OSError: If the file cannot be read.
    DamagedCSVError: If it is no CSV file.
  """
  with open(path, 'rb') as file:
    data = file.read()
  whole = data[: data.rfind(b'\n') + 1]
  try:
    # Spreadsheets put a mark before the first byte.
    text = whole.decode('utf-8-sig')
  except UnicodeDecodeError as error:
    line_num = whole.count(b'\n', 0, error.start) + 1
    raise DamagedCSVError(error, line_num) from error
  reader = csv.reader(io.StringIO(text, newline=''))
  try:
    for fields in reader:
      if fields:
        yield reader.line_num, fields
  except csv.Error as error:
    raise DamagedCSVError(error, reader.line_num) from error
