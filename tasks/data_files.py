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
"""Where the files of published data sets lie."""

import os
import pathlib
from typing import Union


def find_data_file(
    data_dir: Union[str, os.PathLike], place: str, dataset: str
) -> pathlib.Path:
  """Returns the path of a data set's file, which must be there.

  Args:
    data_dir: The folder of the data sets.
    place: The file's path in that folder, such as 'tff/shakespeare.sqlite'.
    dataset: The name of the data set, as `python -m tasks.fetch` knows it.

  Returns:
    The path.

  Raises:
    FileNotFoundError: If there is no such file; says where it belongs and how
      it is downloaded.

  Example:

    >>> find_data_file('data', 'tff/shakespeare.sqlite', 'shakespeare')
    PosixPath('data/tff/shakespeare.sqlite')
  """
  path = pathlib.Path(data_dir) / place
  if not path.exists():
    raise FileNotFoundError(
        f'{path.name} was not found: put it at {path}, or download it by '
        f'`python -m tasks.fetch {dataset} --data_dir={data_dir}`.'
    )
  return path
