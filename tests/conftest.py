# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Fixtures and hooks of a test process: quiet TensorFlow, one TFF worker."""

import collections
import ctypes
import gc
import os
import pathlib

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
# Tests fork to kill the child; what gRPC does then stops it, now and again.
os.environ.setdefault('GRPC_ENABLE_FORK_SUPPORT', '0')
# Tests leave nothing in the folders of a user.
os.environ.setdefault('JAX_ENABLE_COMPILATION_CACHE', 'false')
# Programs of tests are small: to compile them takes longer than to run them.
os.environ.setdefault('JAX_DISABLE_MOST_OPTIMIZATIONS', 'true')
# Numbers and messages of most tests are those of a CPU.
if 'TFF_ADAPTIVE_TEST_GPU' not in os.environ:
  os.environ['CUDA_VISIBLE_DEVICES'] = '-1'

import pytest  # noqa: E402

from experiments import command_line  # noqa: E402


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
  """Drops `tf.test.TestCase.test_session`, and samples the marked grids."""
  items[:] = [item for item in items if item.name != 'test_session']
  grids = collections.defaultdict(list)
  for item in items:
    if item.get_closest_marker('sample'):
      grids[item.parent, item.function.__wrapped__].append(item)
  for cells in grids.values():
    (num_cells,) = cells[0].get_closest_marker('sample').args
    # From the first cell to the last one. A stride that is a multiple of the
    # number of an inner parameter's values would keep only one of them.
    last, gaps = len(cells) - 1, max(num_cells - 1, 1)
    sample = {round(place * last / gaps) for place in range(num_cells)}
    for place, cell in enumerate(cells):
      if place not in sample:
        cell.add_marker(pytest.mark.slow)


def pytest_collection_finish():
  """Has the garbage collector look for cycles in what tests make alone."""
  gc.freeze()
  gc.set_threshold(*gc.get_threshold()[:2], 60)


def pytest_unconfigure():
  """Keeps TFF from printing behind the test runner's last line."""
  command_line.free_default_context()


_TRIMMED_EVERY = 2**30  # Bytes by which the process has grown.
_trimmed_at = 0


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
  """Frees what the tests of a module cached, and memory that glibc would keep.

  Building the graph of a ResNet leaves gigabytes that are free, in pieces. To
  look for them takes seconds, and so waits until the process has grown.
  """
  global _trimmed_at
  module = getattr(item, 'module', None)
  if module is not getattr(nextitem, 'module', None):
    for value in vars(module).values():
      if hasattr(value, 'cache_clear'):
        value.cache_clear()
  if _resident_bytes() > _trimmed_at + _TRIMMED_EVERY:
    gc.collect()
    trim = getattr(ctypes.CDLL(None), 'malloc_trim', None)
    if trim is not None:
      trim(0)
    _trimmed_at = _resident_bytes()


def _resident_bytes():
  """Returns how much memory the process has."""
  pages = pathlib.Path('/proc/self/statm').read_text(encoding='ascii').split()
  return int(pages[1]) * os.sysconf('SC_PAGE_SIZE')


@pytest.fixture(scope='session')
def native_runtime():
  """TFF's native runtime as the default context, one worker for all tests."""
  from tff_adaptive import runtime

  with runtime.NativeContext() as context:
    yield context


@pytest.fixture(scope='session')
def secure_test_runtime():
  """A context that computes secure sums in the clear; install it by `with`."""
  from tff_adaptive import runtime

  context = runtime.NativeContext(secure_sums_in_clear=True)
  yield context
  context.close()
