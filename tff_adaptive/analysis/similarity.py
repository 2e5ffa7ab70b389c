# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Linear centered kernel alignment (CKA), for example of clients' moments.

The similarity of two clients' adaptive states shows how far their data have
driven them apart.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tff_adaptive import _files
from tff_adaptive.analysis import _style
from tff_adaptive.simulation import structures

_MARGIN = 2.2  # For labels, title and color bar, in inches.
_MIN_SIZE = 3.0
_MAX_SIZE = 9.0
_PITCH = 0.5  # Between two rows, in inches.
_FONT_SIZE = 9
_SMALL_FONT_SIZE = 7
_MAX_WRITTEN_ROWS = 12
_MAX_LABELLED_ROWS = 60


def linear_cka(x: np.ndarray, y: np.ndarray) -> float:
  """Computes the linear centered kernel alignment of two matrices.

  ```
  CKA(X, Y) = ||X' Y||_F^2 / (||X' X||_F ||Y' Y||_F)
  ```

  with the mean of every column subtracted first. It is 1 for equal matrices,
  and invariant under multiplication by an orthogonal matrix from the right and
  by a non-zero number. Constant columns become 0 and have no effect; if a
  matrix has no other columns, there is nothing to compare and the result is 0.

  Args:
    x: A matrix of shape [n, p].
    y: A matrix of shape [n, q], whose rows correspond to those of `x`.

  Returns:
    The alignment, in [0, 1].

  Raises:
    ValueError: If an argument is not a matrix, has a non-finite entry, or the
      numbers of rows differ.

  Example:

    >>> x = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    >>> round(linear_cka(x, 3.0 * x), 4)
    1.0
    >>> round(linear_cka(x, x[:, :1]), 4)
    0.7906

  References:
    Kornblith et al., Similarity of Neural Network Representations Revisited,
    ICML 2019, https://arxiv.org/abs/1905.00414, section 3. Deviation: the
    FedCAda paper prints squared norms in the denominator, with which a matrix
    would not be similar to itself.
  """
  x, y = _to_matrix(x, '`x`'), _to_matrix(y, '`y`')
  if len(x) != len(y):
    raise ValueError(
        f'`x` and `y` must have the same number of rows, found {len(x)} and'
        f' {len(y)}.'
    )
  return _alignment(_standardize(x), _standardize(y))


def moments_cka(a: Any, b: Any) -> float:
  """Computes the similarity of two clients' moments over all layers.

  Each kernel is a matrix whose rows are the fan-in (all axes but the last) and
  whose columns are the fan-out. The layers' `linear_cka` are averaged, weighted
  by the number of entries. Vectors and scalars, such as biases, are left out,
  and so are kernels that are constant along the fan-in at both clients (with
  one row, or not trained yet): there is nothing to compare.

  Args:
    a: A client's moments, one array per weight, in mappings or sequences, which
      may be nested.
    b: The moments of another client with the same model.

  Returns:
    The average, in [0, 1]; 0 if there is nothing to compare in any layer.

  Raises:
    ValueError: If there are no kernels, an entry is not finite, or the kernels'
      shapes differ.

  Example:

    >>> moments = [np.eye(3), np.zeros([3])]
    >>> round(moments_cka(moments, moments), 4)
    1.0

  References:
    Zhou et al., FedCAda: Adaptive Client-Side Optimization for Accelerated and
    Stable Federated Learning, 2024, https://arxiv.org/abs/2405.11811, Figure 2.
    Rows, columns and weights are choices made here; the paper gives none.
  """
  return float(pairwise_moments_cka([a, b])[0, 1])


def pairwise_moments_cka(moments: Sequence[Any]) -> np.ndarray:
  """Computes `moments_cka` of each pair of clients.

  Args:
    moments: The moments of each client, see `moments_cka`.

  Returns:
    A symmetric float64 matrix of shape [num_clients, num_clients].

  Raises:
    ValueError: If there are no clients, and see `moments_cka`.

  Example:

    >>> moments = [[np.eye(3)], [2.0 * np.eye(3)]]
    >>> pairwise_moments_cka(moments).round(4).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
  """
  if not moments:
    raise ValueError('`moments` must be of at least one client, found none.')
  kernels = [_kernels(client, i) for i, client in enumerate(moments)]
  shapes = [[kernel.shape for kernel in client] for client in kernels]
  for i, found in enumerate(shapes):
    if found != shapes[0]:
      raise ValueError(
          'The kernels of all clients must have the same shapes, found '
          f'{shapes[0]} at client 0 and {found} at client {i}.'
      )
  standardized = [[_standardize(k) for k in client] for client in kernels]
  matrix = np.zeros([len(moments)] * 2)
  for i, a in enumerate(standardized):
    for j, b in enumerate(standardized[: i + 1]):
      matrix[i, j] = matrix[j, i] = _weighted_alignment(a, b)
  return matrix


def plot_similarity(
    matrix: np.ndarray,
    labels: Sequence[str],
    path: _files.PathLike,
    title: str = '',
    axis_label: str = '',
):
  """Plots a matrix of similarities as a heat map, on a scale from 0 to 1.

  The cells show the values if there are at most 12 rows. The figure uses no
  global state of matplotlib.

  Args:
    matrix: The similarities, in [0, 1], of shape [n, n], such as the result of
      `pairwise_moments_cka`.
    labels: The names of the n rows and columns.
    path: The .png, .pdf or .svg file to write; its folder is created.
    title: The title of the figure. Defaults to no title.
    axis_label: What rows and columns are. Defaults to no label.

  Raises:
    ValueError: If the matrix is not square, a value is not in [0, 1], or the
      number of labels differs from the number of rows.
    OSError: If the file cannot be written; names it.

  Example:

    >>> second_moments = [[np.eye(3)], [2.0 * np.eye(3)], [np.ones([3, 3])]]
    >>> plot_similarity(
    ...     pairwise_moments_cka(second_moments), ['a', 'b', 'c'],
    ...     'plots/second_moments.png', title='CKA of v, round 50')

  References:
    Zhou et al., FedCAda: Adaptive Client-Side Optimization for Accelerated and
    Stable Federated Learning, 2024, https://arxiv.org/abs/2405.11811, Figure 2.
  """
  matrix = _to_matrix(matrix, '`matrix`')
  _check_similarities(matrix, labels)
  num_rows = len(matrix)
  size = np.clip(num_rows * _PITCH, _MIN_SIZE, _MAX_SIZE)
  drawing = _style.new_figure(
      size + _MARGIN, size + 0.6 * _MARGIN, layout='compressed'
  )
  axes = drawing.subplots()
  image = axes.imshow(matrix, cmap=_style.HEAT_COLORS, vmin=0.0, vmax=1.0)
  drawing.colorbar(image, ax=axes, label='similarity')
  _label_rows(axes, [str(label) for label in labels])
  axes.set_xlabel(axis_label)
  axes.set_ylabel(axis_label)
  if num_rows <= _MAX_WRITTEN_ROWS:
    for (row, column), value in np.ndenumerate(matrix):
      look = dict(fontsize=_FONT_SIZE)
      _style.write_cell(axes, row, column, f'{value:.2f}', value, **look)
  _style.save(drawing, path, title)


def _to_matrix(values: Any, name: str) -> np.ndarray:
  """Returns a float64 matrix, or raises."""
  values = np.asarray(values, np.float64)
  if values.ndim != 2:
    raise ValueError(f'{name} must be a matrix, found shape {values.shape}.')
  is_finite = np.isfinite(values)
  if not np.all(is_finite):
    raise ValueError(f'{name} must be finite, found {values[~is_finite][0]}.')
  return values


def _standardize(x: np.ndarray) -> np.ndarray:
  """Centers the columns and scales `||X' X||_F` to 1, or returns zeros.

  The alignment of two such matrices is `||X' Y||_F^2`.
  """
  # This makes constant columns exactly 0, whatever the rounding of the mean.
  x = x - x[:1]
  x = x - x.mean(axis=0) if x.size else x
  largest = np.max(np.abs(x), initial=0.0)
  if largest == 0.0:
    return x
  x = x / largest  # Otherwise squares of small moments would underflow.
  return x / _squared_product(x, x) ** 0.25


def _squared_product(x: np.ndarray, y: np.ndarray) -> float:
  """Returns `||X' Y||_F^2`; products of rows are smaller for wide matrices."""
  if len(x) ** 2 < x.shape[1] * y.shape[1]:
    return float(np.sum((x @ x.T) * (y @ y.T)))
  return float(np.sum(np.square(x.T @ y)))


def _alignment(x: np.ndarray, y: np.ndarray) -> float:
  """Returns the linear CKA of two standardized matrices."""
  return min(max(_squared_product(x, y), 0.0), 1.0)


def _weighted_alignment(
    a: Sequence[np.ndarray], b: Sequence[np.ndarray]
) -> float:
  """Returns the alignment of standardized kernels, weighted by entries."""
  layers = [(x, y) for x, y in zip(a, b) if np.any(x) or np.any(y)]
  if not layers:
    return 0.0
  alignments = [_alignment(x, y) for x, y in layers]
  return float(np.average(alignments, weights=[x.size for x, _ in layers]))


def _kernels(moments: Any, client: int) -> list[np.ndarray]:
  """Returns a client's kernels as matrices of fan-in by fan-out."""
  leaves = [np.asarray(x) for _, x in structures.flatten_with_path(moments)]
  kernels = [
      _to_matrix(
          leaf.reshape([-1, leaf.shape[-1]]), f'The moments of client {client}'
      )
      for leaf in leaves
      if leaf.ndim >= 2
  ]
  if not kernels:
    raise ValueError(
        f'The moments of client {client} must have a kernel, an array with at '
        'least two axes, found none.'
    )
  return kernels


def _check_similarities(matrix: np.ndarray, labels: Sequence[str]) -> None:
  """Raises unless there is a square matrix in [0, 1] with a label per row."""
  if not matrix.size or matrix.shape != (len(labels), len(labels)):
    raise ValueError(
        '`matrix` must have one row and one column per label, found shape '
        f'{matrix.shape} and {len(labels)} `labels`.'
    )
  if matrix.min() < 0.0 or matrix.max() > 1.0:
    raise ValueError(
        f'`matrix` must have values from 0 to 1, found {matrix.min():g} to '
        f'{matrix.max():g}.'
    )


def _label_rows(axes, labels: Sequence[str]) -> None:
  """Labels the rows and columns; skips labels if there are many."""
  step = -(-len(labels) // _MAX_LABELLED_ROWS)
  shown = range(0, len(labels), step)
  font_size = _FONT_SIZE if len(labels) <= 30 else _SMALL_FONT_SIZE
  for axis in (axes.xaxis, axes.yaxis):
    axis.set_ticks(shown, labels[::step])
    axis.set_tick_params(length=0, labelsize=font_size)
  axes.xaxis.set_tick_params(rotation=90 if max(map(len, labels)) > 2 else 0)
  axes.spines[:].set_visible(False)
