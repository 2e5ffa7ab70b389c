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
"""Writes the files of the leaderboard: page, numbers and pictures."""

import pathlib

from experiments import pages
from experiments.leaderboards import csv_file
from experiments.leaderboards import drawing
from experiments.leaderboards import page as page_lib
from experiments.leaderboards import plans
from experiments.leaderboards import results as results_lib
from tff_adaptive import _files


def write(
    plan: plans.Plan,
    catalogue: plans.Plan,
    results_dir: pathlib.Path,
    command: str,
):
  """Writes `<results_dir>/leaderboard` as .md, .html, .csv and its pictures.

  Args:
    plan: What is compared.
    catalogue: All that there is, for the list of what was not run.
    results_dir: The folder that gets the page; it is made.
    command: What makes the page.

  Raises:
    OSError: If a file cannot be read or written.
    RunError: If a file of a run is damaged.
    UserError: If a record of finished runs is damaged.
  """
  results = results_lib.Results(plan)
  path = results_dir / 'leaderboard'
  pictures = drawing.draw(results, path)
  page = page_lib.build_page(
      results, results_lib.Results(catalogue), pictures, command
  )
  for suffix, text in (
      ('.csv', csv_file.format_csv(results)),
      ('.md', pages.to_markdown(page)),
      ('.html', pages.to_html(page)),
  ):
    with _files.replacing(path.with_suffix(suffix)) as file:
      file.write(text.encode())
  print(f'{path}.html')
