# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains in forks of one process, and kills them at chosen instants.

`python -m tests.experiments.train.resume_driver` imports everything once, which
takes seconds. For every line on its standard input, a request, it forks a
training and answers with a line on its standard output when that has ended.
"""

import functools
import json
import os
import pathlib
import resource
import signal
import sys
import time
from typing import Any
from unittest import mock

from experiments import command_line

# As the binary does, before the first import of TensorFlow: it changes bits.
command_line.prepare_libraries()

from experiments.train import __main__ as train  # noqa: E402
from experiments.train import training_run  # noqa: E402, F401
from tests.tff_adaptive import kill_testing  # noqa: E402
from tff_adaptive.simulation import run_directory  # noqa: E402

_BEGIN = b'begin\n'
_Json = dict[str, Any]


def _redirect(request: _Json):
  """Puts the standard streams of this process into files."""
  for number, path, mode in (
      (0, os.devnull, os.O_RDONLY),
      (1, request['stdout'], os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
      (2, request['stderr'], os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
  ):
    os.dup2(os.open(path, mode, 0o644), number)


def _train(request: _Json, pipe: int):
  """Runs the binary in this process, a child, to its end or its death."""
  _redirect(request)
  if request['max_file_size'] is not None:
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (request['max_file_size'], hard))
  original = run_directory.RunDirectory.open

  @functools.wraps(original)
  def tell_and_open(*args, **kwargs):
    os.write(pipe, _BEGIN)
    return original(*args, **kwargs)

  sys.argv = ['train', *request['arguments']]
  instants = kill_testing.Instants(
      pathlib.Path(request['folder']), request['kill_at']
  )
  with mock.patch.object(run_directory.RunDirectory, 'open', tell_and_open):
    with instants.watched():
      command_line.run(train.main)
  os.write(pipe, json.dumps(instants.names).encode() + b'\n')


def _answer(request: _Json) -> _Json:
  """Trains in a child, kills it if that is wanted, and tells how it ended."""
  reader, writer = os.pipe()
  child = kill_testing.fork(functools.partial(_train, request, writer))
  os.close(writer)
  with os.fdopen(reader, 'rb') as pipe:
    begun = pipe.readline() == _BEGIN
    start = time.monotonic()
    if begun and request['kill_after'] is not None:
      time.sleep(request['kill_after'])
      os.kill(child, signal.SIGKILL)
    names = pipe.readline()
    seconds = time.monotonic() - start
  return {
      'code': kill_testing.wait(child),
      'seconds': seconds,
      'instants': json.loads(names or b'[]'),
  }


def main():
  """Answers requests until there are no more."""
  for line in sys.stdin:
    print(json.dumps(_answer(json.loads(line))), flush=True)
  # At the end of the interpreter TFF's own context prints a traceback.
  os._exit(0)  # pylint: disable=protected-access


if __name__ == '__main__':
  main()
