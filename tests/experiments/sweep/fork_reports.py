# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Prints what a process is told of itself, for the tests of forks."""

import json
import os
import sys
import tempfile
import time


def main():
  print(
      json.dumps(
          {
              'arguments': sys.argv[1:],
              'cores': sorted(os.sched_getaffinity(0)),
              'input': sys.stdin.read(),
              'leads_session': os.getsid(0) == os.getpid(),
              'has_tensorflow': 'tensorflow' in sys.modules,
              'pid': os.getpid(),
              # It stays, as do files of TensorFlow.
              'temporary': tempfile.mkstemp()[1],
          }
      ),
      flush=True,
  )
  if '--wait' in sys.argv:
    time.sleep(60)
  sys.exit(3 if '--fail' in sys.argv else 0)


if __name__ == '__main__':
  main()
