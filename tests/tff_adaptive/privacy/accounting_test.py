# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the accountant of private rounds."""

import functools
import math

from absl.testing import parameterized
import numpy as np
from scipy import integrate

from tff_adaptive import privacy

_POISSON = privacy.CohortSampling.POISSON
_FIXED = privacy.CohortSampling.FIXED


@functools.cache
def _build(noise_multiplier, sampling, num_clients=100, clients_per_round=10):
  return privacy.RoundAccountant(
      noise_multiplier=noise_multiplier,
      num_clients=num_clients,
      clients_per_round=clients_per_round,
      sampling=sampling,
  )


def _rdp_at(accountant, order):
  return accountant.rdp_per_round[list(accountant.orders).index(order)]


class RoundAccountantTest(parameterized.TestCase):

  @parameterized.parameters((_POISSON, 1), (_FIXED, 2))
  def test_rounds_of_all_clients_are_the_gaussian_mechanism(
      self, sampling, sensitivity
  ):
    accountant = _build(3.0, sampling, clients_per_round=100)
    orders = accountant.orders
    # Mironov 2017, Proposition 7.
    rdp = orders * sensitivity**2 / (2 * 3.0**2)
    np.testing.assert_allclose(accountant.rdp_per_round, rdp)
    # Canonne, Kamath, Steinke 2020, Proposition 12.
    expected = min(
        7 * r + math.log1p(-1 / a) - math.log(1e-4 * a) / (a - 1)
        for a, r in zip(orders, rdp)
    )
    self.assertAlmostEqual(accountant.get_epsilon(7, 1e-4), expected)

  @parameterized.product(order=[2, 5, 1.5], noise_multiplier=[0.8, 2.0])
  def test_poisson_sampling_is_the_integral(self, order, noise_multiplier):
    accountant = _build(noise_multiplier, _POISSON)
    variance = noise_multiplier**2

    def integrand(x):
      # Of the density with the client over that without it, mu / mu_0.
      ratio = 0.9 + 0.1 * math.exp((2 * x - 1) / (2 * variance))
      density = math.exp(-(x**2) / (2 * variance))
      return density / math.sqrt(2 * math.pi * variance) * ratio**order

    moment, _ = integrate.quad(integrand, -40, 40, limit=500)
    expected = math.log(moment) / (order - 1)
    self.assertAlmostEqual(_rdp_at(accountant, order), expected, places=6)

  def test_fixed_cohorts_cost_no_less_than_a_lower_bound(self):
    # One client in ten is replaced, all others send zeros: the sum is 1 or -1
    # if that one takes part. Gauss-Hermite quadrature of the divergence.
    accountant = _build(2.0, _FIXED)
    x, weights = np.polynomial.hermite.hermgauss(100)
    x = x * math.sqrt(2) * 2.0

    def density(point, mean):
      return np.exp(-((point - mean) ** 2) / 8)

    for order in (2, 4, 8):
      first = 0.9 * density(x, 0) + 0.1 * density(x, 1)
      second = 0.9 * density(x, 0) + 0.1 * density(x, -1)
      moment = np.sum(
          weights * (first / second) ** order * second / density(x, 0)
      ) / math.sqrt(math.pi)
      lower = math.log(moment) / (order - 1)
      self.assertGreater(lower, 0)
      self.assertGreater(_rdp_at(accountant, order), lower)

  @parameterized.parameters(_POISSON, _FIXED)
  def test_more_rounds_cost_more_and_more_noise_costs_less(self, sampling):
    accountant = _build(1.0, sampling)
    epsilons = [accountant.get_epsilon(n, 1e-3) for n in range(6)]
    self.assertEqual(epsilons[0], 0.0)
    self.assertEqual(epsilons, sorted(set(epsilons)))
    quieter = _build(2.0, sampling).get_epsilon(5, 1e-3)
    self.assertLess(quieter, epsilons[5])

  @parameterized.parameters(_POISSON, _FIXED)
  def test_sampling_amplifies(self, sampling):
    few, all_clients = (
        _build(4.0, sampling, clients_per_round=size) for size in (1, 100)
    )
    self.assertLess(
        few.get_epsilon(10, 1e-3), 0.5 * all_clients.get_epsilon(10, 1e-3)
    )

  @parameterized.parameters(_POISSON, _FIXED)
  def test_without_noise_epsilon_is_infinite(self, sampling):
    accountant = _build(0.0, sampling)
    self.assertEqual(accountant.get_epsilon(1, 1e-3), math.inf)
    self.assertEqual(accountant.get_epsilon(0, 1e-3), 0.0)

  def test_default_delta(self):
    self.assertAlmostEqual(privacy.default_delta(10), 10**-1.1)
