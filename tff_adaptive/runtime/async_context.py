# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The compiled runtime for `tff.program`, whose contexts are asynchronous."""

import asyncio
from typing import Any

import tensorflow_federated as tff

from tff_adaptive.runtime import compiled


class AsyncCompiledContext(tff.framework.AsyncContext):
  """Runs computations as coroutines; see `create_async_context`.

  Attributes:
    context: The compiled context that runs them.
  """

  def __init__(self, context: compiled.CompiledContext):
    """Initializes the context.

    Args:
      context: The compiled context that runs the computations.
    """
    self.context = context

  async def invoke(
      self, comp: tff.framework.ConcreteComputation, arg: Any
  ) -> Any:
    """Runs a computation, see `CompiledContext.invoke`.

    Computations run one after the other in another thread, while the event loop
    goes on.

    Args:
      comp: The computation.
      arg: Its argument, or None; or a coroutine that returns it.

    Returns:
      Its result.
    """
    if asyncio.iscoroutine(arg):
      arg = await arg
    return await asyncio.to_thread(self.context.invoke, comp, arg)

  def close(self) -> None:
    """Ends the native runtime's worker, if one was started."""
    self.context.close()


def create_async_context(**kwargs: Any) -> AsyncCompiledContext:
  """Creates a compiled context for `tff.program`.

  The programs of TFF, such as `tff.learning.programs.train_model`, run in a
  `tff.program.FederatedContext` around an asynchronous context.

  Args:
    **kwargs: See `create_compiled_context`, also for errors.

  Returns:
    The context, for `tff.program.NativeFederatedContext`. Its `context` is the
    compiled one, with `begin_round` and `plan_of`.

  Example:
    ```python
    import asyncio
    import tensorflow_federated as tff
    from tff_adaptive import runtime

    tff.framework.set_default_context(
        tff.program.NativeFederatedContext(runtime.create_async_context())
    )
    asyncio.run(tff.learning.programs.train_model(...))
    ```
  """
  return AsyncCompiledContext(compiled.create_compiled_context(**kwargs))
