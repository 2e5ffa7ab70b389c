# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""FedAvg in stock TFF with SGD, and with Delta-SGD: one line changes.

  python docs/examples/one_line_optimizer.py

trains both on handwritten digits and prints their test accuracies.
"""

import stock_pipeline
import tensorflow_federated as tff

from tff_adaptive import optimizers
from tff_adaptive import runtime


def main():
  """Trains with both client optimizers and prints the accuracies."""
  clients_data, test_examples = stock_pipeline.load_digits()
  clients = stock_pipeline.batch_clients(clients_data)
  sgd = tff.learning.optimizers.build_sgdm(learning_rate=0.02)
  # The line that changes: any optimizer of tff_adaptive in the place of TFF's.
  delta_sgd = optimizers.build_delta_sgd(previous_gradient='reuse')

  for title, client_optimizer in (
      ('SGD, learning rate 0.02', sgd),
      ('Delta-SGD, nothing tuned', delta_sgd),
  ):
    process = tff.learning.algorithms.build_weighted_fed_avg(
        stock_pipeline.model_fn,
        client_optimizer_fn=client_optimizer,
        server_optimizer_fn=tff.learning.optimizers.build_sgdm(1.0),
    )
    weights, _ = stock_pipeline.train(
        process, clients, num_rounds=20, clients_per_round=10
    )
    accuracy = stock_pipeline.accuracy(weights, test_examples)
    print(f'{title}: test accuracy {accuracy:.2f}', flush=True)


if __name__ == '__main__':
  # TFF's own runtime, as without this line, where its worker process would
  # outlive the program.
  with runtime.NativeContext():
    main()
