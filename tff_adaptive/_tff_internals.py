# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""All that reads private parts of TFF, besides the shim of its import.

Names and attributes are those of TFF 0.87; TFF itself is not imported here.
"""

import inspect
import subprocess
from typing import Any, Optional

# The module of TFF's context for programs, which awaits results.
PROGRAM_CONTEXT = 'tensorflow_federated.python.program.native_platform'
# The module by which an argument tells the number of its clients.
CARDINALITIES = (
    'tensorflow_federated.python.core.impl.executors.cardinality_carrying_base'
)

_LEARNING = 'tensorflow_federated.python.learning'
# The modules of TFF that step the optimizer of a server, or one of clients.
SERVER_STEP = f'{_LEARNING}.templates.apply_optimizer_finalizer'
MIME_STEP = f'{_LEARNING}.algorithms.mime'
CLIENT_STEPS = (
    MIME_STEP,
    f'{_LEARNING}.algorithms.fed_recon',
    f'{_LEARNING}.algorithms.fed_recon_eval',
    f'{_LEARNING}.templates.model_delta_client_work',
    f'{_LEARNING}.templates.proximal_client_work',
)


def stepping_module() -> Optional[str]:
  """Returns which module of TFF steps an optimizer, None if it is not TFF."""
  frame = inspect.currentframe()
  while frame is not None:
    name = frame.f_globals.get('__name__')
    if name == SERVER_STEP or name in CLIENT_STEPS:
      return name
    frame = frame.f_back
  return None


def contexts_in(stack: Any) -> list[Any]:
  """Returns the contexts of TFF's context stack; the first is the default."""
  return stack._stack  # pylint: disable=protected-access


def worker_of(context: Any) -> Optional[subprocess.Popen]:
  """Returns the worker process that one of TFF's own contexts started."""
  factory = getattr(context, 'executor_factory', None)
  stack_fn = getattr(factory, '_executor_stack_fn', None)
  if stack_fn is None:
    return None
  manager = inspect.getclosurevars(stack_fn).nonlocals.get('service_manager')
  return getattr(manager, '_process', None)


def close_event_loop(context: Any) -> None:
  """Closes a context's event loop, which leaks three descriptors otherwise."""
  runner = context._async_runner  # pylint: disable=protected-access
  loop = runner._event_loop  # pylint: disable=protected-access
  if not loop.is_closed():
    loop.call_soon_threadsafe(loop.stop)
    runner._thread.join()  # pylint: disable=protected-access
    loop.close()
    # Its finalizer would stop the loop again.
    runner._finalizer = lambda loop, thread: None  # pylint: disable=protected-access
