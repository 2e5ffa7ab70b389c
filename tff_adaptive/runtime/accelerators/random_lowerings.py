# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's stateless random ops in JAX, with the same bits.

They draw from Philox-4x32-10 (Salmon et al., "Parallel random numbers: as easy
as 1, 2, 3", SC 2011), a generator that counts: block `i` of four words is the
encryption of the number `i`. Constants and the order of words are those of
TensorFlow's CPU kernels.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from jax import lax
import jax.numpy as jnp
import numpy as np

from tff_adaptive.runtime.accelerators import lowerings

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_NUM_CYCLES = 10
# The key with which TensorFlow mixes the two seeds.
_MIXING_KEY = (0x3EC8F720, 0x02461E29)
# The smallest uniform number of which TensorFlow takes the logarithm.
_SMALLEST = 1e-7

_WORD_BITS = 32


def _multiply(factor: int, words: Any) -> tuple[Any, Any]:
  """Returns the low and the high word of a product."""
  product = words.astype(jnp.uint64) * jnp.uint64(factor)
  low = product.astype(jnp.uint32)
  return low, (product >> np.uint64(_WORD_BITS)).astype(jnp.uint32)


def _cycle(counter: Sequence[Any], key: Sequence[Any]) -> list[Any]:
  """Returns the words after one cycle of the encryption."""
  low0, high0 = _multiply(_MULTIPLIERS[0], counter[0])
  low1, high1 = _multiply(_MULTIPLIERS[1], counter[2])
  return [
      high1 ^ counter[1] ^ key[0],
      low1,
      high0 ^ counter[3] ^ key[1],
      low0,
  ]


def _next_key(key: Sequence[Any]) -> list[Any]:
  return [word + np.uint32(step) for word, step in zip(key, _KEY_STEPS)]


def philox(counter: Sequence[Any], key: Sequence[Any]) -> list[Any]:
  """Returns four random words for each counter.

  Args:
    counter: Four arrays of words, uint32 of one shape.
    key: Two words.
  """

  def unrolled(counter, key):
    for _ in range(_NUM_CYCLES):
      counter, key = _cycle(counter, key), _next_key(key)
    return counter

  def looped(counter, key):
    def turn(_, carried):
      counter, key = carried
      return _cycle(counter, key), _next_key(key)

    return lax.fori_loop(0, _NUM_CYCLES, turn, (counter, key))[0]

  # On a CPU, XLA computes what it unrolls and joins again for each entry.
  return lax.platform_dependent(
      list(counter), list(key), cpu=looped, default=unrolled
  )


def _words_of(value: Any) -> list[Any]:
  """Returns the low and the high word of an integer of 64 bits."""
  wide = value.astype(jnp.int64).astype(jnp.uint64)
  return [
      wide.astype(jnp.uint32),
      (wide >> np.uint64(_WORD_BITS)).astype(jnp.uint32),
  ]


class Stream(NamedTuple):
  """The place of a generator: its key and its counter, words each."""

  key: Sequence[Any]
  counter: Sequence[Any]

  def draw(self, shape: Sequence[int], num_words: int) -> Any:
    """Returns random words for each entry of a shape: [entries, num_words]."""
    size = int(np.prod(shape))
    num_blocks = -(-size * num_words // 4)
    first = _join(jnp.stack(self.counter[:2])[None])
    numbers = first + jnp.arange(num_blocks, dtype=jnp.uint64)
    high = [jnp.full([num_blocks], word) for word in self.counter[2:]]
    words = philox([*_words_of(numbers), *high], self.key)
    return jnp.stack(words, -1).reshape([-1, num_words])[:size]


def of_seed(seed: Any) -> Stream:
  """Returns the generator of a seed, two integers."""
  seed = jnp.asarray(seed)
  mixed = philox(
      [*_words_of(seed[0]), *_words_of(seed[1])],
      [jnp.uint32(word) for word in _MIXING_KEY],
  )
  zero = jnp.zeros([], jnp.uint32)
  return Stream(mixed[:2], [zero, zero, *mixed[2:]])


def _of_state(key: Any, counter: Any) -> Stream:
  """Returns the generator of a key and a counter of 64 bits each number."""
  key, counter = jnp.asarray(key), jnp.asarray(counter)
  return Stream(
      _words_of(key[0]), [*_words_of(counter[0]), *_words_of(counter[1])]
  )


def _join(words: Any) -> Any:
  """Returns integers of 64 bits, from a low and a high word each."""
  low, high = (words[:, place].astype(jnp.uint64) for place in (0, 1))
  return low | (high << np.uint64(_WORD_BITS))


def _to_uniform(words: Any, dtype: Any) -> Any:
  """Returns numbers in [0, 1): random bits behind the binary point."""
  if dtype == jnp.float64:
    low, high = words[:, 0], words[:, 1]
    fraction = _join(jnp.stack([high, low & np.uint32(0xFFFFF)], -1))
    bits = fraction | np.uint64(1023 << 52)
    return lax.bitcast_convert_type(bits, jnp.float64) - 1.0
  finfo = jnp.finfo(dtype)
  integer = jnp.uint32 if finfo.bits == 32 else jnp.uint16
  one = np.array(1, dtype).view(np.dtype(integer))
  mask = np.array((1 << finfo.nmant) - 1, np.dtype(integer))
  bits = (words[:, 0].astype(integer) & mask) | one
  return lax.bitcast_convert_type(bits, dtype) - jnp.ones([], dtype)


def _words_for(dtype: Any) -> int:
  return 2 if jnp.dtype(dtype).itemsize == 8 else 1


def uniform(stream: Stream, shape: Sequence[int], dtype: Any) -> Any:
  """Returns uniform numbers in [0, 1)."""
  words = stream.draw(shape, _words_for(dtype))
  return _to_uniform(words, dtype).reshape(shape)


def normal(stream: Stream, shape: Sequence[int], dtype: Any) -> Any:
  """Returns normal numbers, by the method of Box and Muller."""
  size = int(np.prod(shape))
  wide = jnp.float64 if dtype == jnp.float64 else jnp.float32
  num_words = _words_for(wide)
  words = stream.draw([size + size % 2], num_words)
  pairs = words.reshape([-1, 2 * num_words])
  radius = jnp.maximum(
      _to_uniform(pairs[:, :num_words], wide), np.asarray(_SMALLEST, wide)
  )
  angle = np.asarray(2 * np.pi, wide) * _to_uniform(pairs[:, num_words:], wide)
  radius = jnp.sqrt(-2 * jnp.log(radius))
  both = jnp.stack([jnp.sin(angle) * radius, jnp.cos(angle) * radius], -1)
  return both.reshape([-1])[:size].reshape(shape).astype(dtype)


def integers(stream: Stream, shape: Sequence[int], dtype: Any) -> Any:
  """Returns integers of which all bits are random."""
  num_words = _words_for(dtype)
  words = stream.draw(shape, num_words)
  joined = _join(words) if num_words == 2 else words[:, 0]
  return joined.astype(dtype).reshape(shape)


def integers_in(
    stream: Stream, shape: Sequence[int], low: Any, high: Any, dtype: Any
) -> Any:
  """Returns integers in [low, high)."""
  unsigned = jnp.uint64 if jnp.dtype(dtype).itemsize == 8 else jnp.uint32
  bits = integers(stream, shape, unsigned)
  span = jnp.asarray(high).astype(unsigned) - jnp.asarray(low).astype(unsigned)
  rest = lax.rem(bits, jnp.broadcast_to(span, bits.shape))
  return jnp.asarray(low) + rest.astype(dtype)


def _shape_of(shape: Any) -> tuple[int, ...]:
  return lowerings.as_shape(shape, 'the shape of random numbers')


def _register(name: str, draw: Callable[..., Any]) -> None:
  """Registers an op by its seed, and the newer one by a key and a counter.

  Args:
    name: The name of the op.
    draw: Maps a stream, a shape, further inputs and a dtype to numbers.
  """

  @lowerings.lowers(name)
  def by_seed(node, shape, seed, *limits):
    stream = of_seed(seed)
    return draw(stream, _shape_of(shape), *limits, node.dtype('dtype'))

  @lowerings.lowers(f'{name}V2')
  def by_state(node, shape, key, counter, algorithm, *limits):
    del algorithm  # Philox, as `_get_algorithm` says.
    stream = _of_state(key, counter)
    return draw(stream, _shape_of(shape), *limits, node.dtype('dtype'))


OPS: dict[str, Callable[..., Any]] = {
    'StatelessRandomUniform': uniform,
    'StatelessRandomNormal': normal,
    'StatelessRandomUniformFullInt': integers,
    'StatelessRandomUniformInt': integers_in,
}
for _name, _draw in OPS.items():
  _register(_name, _draw)


@lowerings.lowers('StatelessRandomGetKeyCounter')
def _get_key_counter(node, seed):
  del node  # Unused.
  stream = of_seed(seed)
  words = jnp.stack([*stream.key, *stream.counter]).reshape([-1, 2])
  joined = _join(words)
  return joined[:1], joined[1:]


@lowerings.lowers('StatelessRandomGetAlg')
def _get_algorithm(node):
  del node  # Unused.
  return np.asarray(1, np.int32)
