# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The compiled runtime for `tff.program`, whose contexts are asynchronous."""

import asyncio
from typing import Any

import tensorflow_federated as tff

from tff_adaptive.runtime import compiled


class AsyncCompiledContext(tff.framework.AsyncContext):
  """Runs computations in this process, as coroutines for `tff.program`.

  The programs of TFF, such as `tff.learning.programs.train_model`, run in a
  `tff.program.FederatedContext` around an asynchronous context.

  Attributes:
    context: The `CompiledContext` that runs them, with `begin_round` and
      `plan_of`.

  Example:
    ```python
    import asyncio
    import tensorflow_federated as tff
    from tff_adaptive import runtime

    tff.framework.set_default_context(
        tff.program.NativeFederatedContext(runtime.AsyncCompiledContext())
    )
    asyncio.run(tff.learning.programs.train_model(...))
    ```
  """

  def __init__(self, **kwargs: Any):
    """Initializes the context.

    Args:
      **kwargs: See `CompiledContext`, also for errors.
    """
    self.context = compiled.CompiledContext(**kwargs)

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
