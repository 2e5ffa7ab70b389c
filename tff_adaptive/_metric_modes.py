# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Whether larger or smaller values of a metric are better, by its name.

A name that does not tell has no mode: nothing is guessed.
"""

from collections.abc import Iterable, Mapping
import re
from typing import Optional

MAX = 'max'
MIN = 'min'
MODES = (MAX, MIN)

# The ends of names, of which the longest that fits counts. Written in lower
# case with '_' between words, without the endings of `_ENDINGS`.
_HIGHER_IS_BETTER = (
    # Classification.
    r'acc|accuracy|auc|auroc|auprc|auc_roc|auc_pr|roc|roc_auc|pr_auc|ap|map'
    r'|average_precision|precision|recall|sensitivity|specificity|selectivity'
    r'|tp|tn|tpr|tnr|ppv|npv|true_positives?|true_negatives?|correct'
    r'|correct_predictions|(positive|negative)_predictive_value|f_?\d|f0_5|fbeta'
    r'|f_beta|f_measure|g_mean|gmean|mcc|matthews(_correlation)?|kappa|youden'
    r'|youdens_j|informedness|markedness|top_?\d+|top_k|hits?|success|win'
    # Segmentation, images and sound.
    r'|iou|io_u|jaccard|jaccard_similarity|dice_(coef|coefficient|score'
    r'|similarity)|psnr|ssim|ms_ssim|inception_score|snr|sdr|si_sdr|pesq|stoi'
    # Regression and correlation.
    r'|r2|r_2|r_squared|explained_variance|coefficient_of_determination|nse'
    r'|cosine_similarity|cosine_proximity|structural_similarity|correlation'
    r'|corr|pearsonr?|spearmanr?|kendall(_tau)?|concordance|c_index|ccc'
    # Ranking and clustering.
    r'|mrr|reciprocal_rank|ndcg|dcg|nmi|ari|silhouette|homogeneity|purity'
    r'|completeness|v_measure'
    # Language.
    r'|bleu|sacrebleu|rouge|rouge_?(l|lsum)|meteor|chrf|bert_?score|bleurt|comet'
    r'|cider|spice|exact_match'
    # Likelihoods, rewards, fairness.
    r'|(log_?)?likelihood|log_?prob|elbo|rewards?|utility|fairness|jains?_index'
    r'|(demographic_parity|equalized_odds)_ratio'
)
_LOWER_IS_BETTER = (
    # Losses and errors.
    r'loss|losses|errors?|risk|regret|cost|penalty|mistakes?|incorrect'
    r'|misclassifi(ed|cations?)|cross_?entropy|x_?ent|xentropy|b?ce|cce|hinge'
    r'|huber|log_?cosh|poisson|deviance|divergence|kld?|jsd|mmd|nll|nelbo|aic'
    r'|bic|([rnw]|nr)?mse|[rw]?mae|medae|w?mape|smape|mase|wape|r?msle|mad|sse'
    r'|rss|pinball|ctc'
    # Classification.
    r'|fp|fn|fpr|fnr|fdr|false_positives?|false_negatives?|false_discovery'
    r'|false_omission|false_alarms?|false_acceptance|false_rejection|fall_?out'
    r'|miss|misses|eer|ber|zero_one'
    # Calibration.
    r'|brier|[aemst]ce|miscalibration|c?rps|ranked_probability'
    # Language and sound.
    r'|perplexity|ppl|wer|cer|ter|mer|per|bpc|bpb|bpd'
    r'|bits_per_(byte|char|character|dim|dimension|token|word)|lpips|fid|kid'
    r'|(edit|inception|jaccard)_distance|((hamming|hausdorff|levenshtein'
    r'|wasserstein)(_distance)?)|mean_rank|davies_bouldin'
    # Likelihoods, and differences between groups.
    r'|neg(ative)?_log_?likelihood|gap|disparity|unfairness|theil'
    r'|generalized_entropy|violations?'
    r'|(demographic_parity|equalized_odds)_difference'
)
_TOLD = re.compile(
    rf'.*?(?:^|_)(?:(?P<max>{_HIGHER_IS_BETTER})|(?P<min>{_LOWER_IS_BETTER}))$'
)
# Also without a word's beginning, as in 'focalloss'.
_JOINED = re.compile('(?P<max>$^)|.*(?P<min>loss|error|crossentropy)$')
# Endings that keep a mode: statistics over clients, units, numbers, parts.
_ENDINGS = re.compile(
    r'_(weighted_mean|mean|avg|average|median|min|max|(worst|best)_decile|worst'
    r'|best|p\d+|percentile_\d+|q\d+|ema|smoothed|last|final|at_(\d+(_\d+)?|k)'
    r'|rates?|scores?|index|value|metric|coefficient|sum|total|counts?'
    r'|percent|percentage|pct|per_[a-z]+|(without|excluding)_.+|\d+)$'
    r'|(?<=[a-z])\d+$'
)
# A spread over clients: the smaller, the fairer, whatever the mode.
_SPREADS = re.compile(
    r'_(std|stddev|std_dev|standard_deviation|variance|var|spread|range|iqr)$'
)
# Words before a metric that may turn it around, and those that surely do:
# scikit-learn's 'neg_mean_squared_error', but not a 'negative_recall'.
_NEGATIONS = re.compile(
    r'(^|_)(neg|negative|minus|inverse|inv|reciprocal|non|not|no)_'
)
_MINUS = re.compile(r'(^|_)(1|one)_minus_$')
_NEGATIVE = re.compile(r'^neg(ative)?_')
_COUNTS = re.compile(
    r'^(num|number_of|n|count)_|(^|_)(examples|samples|batches|tokens|clients'
    r'|steps|words|count|counts|weight_sum)$'
)


class UnknownModeError(ValueError):
  """The name of a metric does not tell whether larger values are better.

  Attributes:
    metric: The name.
  """

  def __init__(self, metric: str, argument: str):
    super().__init__(
        f'the name of the metric {metric!r} does not tell whether larger '
        f'values are better; give {argument}: {MAX!r} if they are, {MIN!r} if '
        'smaller ones are'
    )
    self.metric = metric


def find_mode(metric: str) -> Optional[str]:
  """Returns the mode of a metric.

  Args:
    metric: The name of the metric, or of its column.

  Returns:
    'max' if larger values are better, 'min' if smaller ones are, as for losses,
    errors and their statistics over clients; None if the name does not tell.

  Example:
    >>> find_mode('evaluation/clients/false_positives_mean')
    'min'
  """
  name = metric.rpartition('/')[2]
  # 'F1Score' and 'MeanIoU' are 'f1_score' and 'mean_iou'.
  name = name.replace('IoU', 'Iou').replace('@', '_at_')
  name = re.sub(r'(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])', '_', name)
  return _find(re.sub(r'\W+', '_', name.lower()).strip('_'))


def _find(name: str) -> Optional[str]:
  """Returns the mode of a name in lower case."""
  while True:
    found = _TOLD.match(name) or _JOINED.match(name)
    if found:
      mode = str(found.lastgroup)
      before = name[: found.start(mode)]
      if not _NEGATIONS.search(before):
        return mode
      if _MINUS.search(before):
        return MIN if mode == MAX else MAX
      return MAX if mode == MIN and _NEGATIVE.match(before) else None
    spread = _SPREADS.search(name)
    if spread:
      return None if _find(name[: spread.start()]) is None else MIN
    shorter = _ENDINGS.sub('', name, count=1)
    if shorter == name:
      return None
    name = shorter


def mode_of(
    metric: str, given: Optional[str] = None, argument: str = '`mode`'
) -> str:
  """Returns the mode of a metric, or asks for it.

  Args:
    metric: See `find_mode`.
    given: The mode that the user gave, which wins; None for what the name says.
    argument: The name of its argument or flag, for errors.

  Raises:
    UnknownModeError: If no mode was given and the name does not tell.
  """
  mode = given or find_mode(metric)
  if mode is None:
    raise UnknownModeError(metric, argument)
  return mode


def is_higher_better(metric: str) -> bool:
  """Returns whether larger values of a metric are better.

  Args:
    metric: See `find_mode`.

  Raises:
    UnknownModeError: If the name does not tell.
  """
  return mode_of(metric) == MAX


def is_count(metric: str) -> bool:
  """Returns whether a metric only counts, such as 'num_examples'."""
  return find_mode(metric) is None and bool(
      _COUNTS.search(metric.rpartition('/')[2])
  )


def check_modes(
    metrics: Iterable[str], given: Mapping[str, str], argument: str
):
  """Raises unless every metric is a count or has a mode, by name or given.

  Args:
    metrics: The names of the metrics.
    given: The modes that the user gave, by metric.
    argument: The name of their argument, for errors.

  Raises:
    ValueError: If a mode is unknown, or given for a metric that is not there.
    UnknownModeError: If a metric has no mode.
  """
  metrics = list(metrics)
  for name, mode in given.items():
    if mode not in MODES:
      raise ValueError(
          f'{argument} of {name!r} must be {MAX!r} or {MIN!r}, found {mode!r}.'
      )
    if name not in metrics:
      raise ValueError(
          f'{argument} names the metric {name!r}, but there are '
          f'{", ".join(metrics)}.'
      )
  for name in metrics:
    if not is_count(name):
      mode_of(name, given.get(name), f'{argument} of {name!r}')
