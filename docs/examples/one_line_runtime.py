# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Stock TFF, and the same process on the compiled runtime: one line.

  python docs/examples/one_line_runtime.py

trains twice and prints how much faster the second time was, and how far apart
the weights are.
"""

import statistics

import numpy as np
import stock_pipeline
import tensorflow_federated as tff

from tff_adaptive import runtime


def main():
  """Trains on both runtimes, prints the speed-up and the difference."""
  clients_data, _ = stock_pipeline.load_digits()
  clients = stock_pipeline.batch_clients(clients_data)
  process = tff.learning.algorithms.build_weighted_fed_avg(
      stock_pipeline.model_fn,
      client_optimizer_fn=tff.learning.optimizers.build_sgdm(0.1),
      server_optimizer_fn=tff.learning.optimizers.build_sgdm(1.0),
  )

  def train():
    weights, seconds = stock_pipeline.train(
        process,
        clients,
        num_rounds=4,
        clients_per_round=stock_pipeline.NUM_CLIENTS,
    )
    # The first round also traces the computations.
    return weights.trainable, statistics.median(seconds[1:])

  weights, seconds = train()
  # The line that changes. It also ends TFF's own runtime with its worker.
  runtime.CompiledContext().install()
  compiled_weights, compiled_seconds = train()

  difference = max(
      np.max(np.abs(a - b)) for a, b in zip(weights, compiled_weights)
  )
  print(f'speed-up of a round: {seconds / compiled_seconds:.1f} times')
  print(f'largest difference of the weights: {difference:.1e}')


if __name__ == '__main__':
  main()
