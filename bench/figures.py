"""Medians, and how sure they are.

Rounds are interleaved, so a noisy second hits every proxy of a round alike: the ratio is taken within a round, and the
median over rounds is given with a bootstrap interval (percentile method, 95 %).
"""

import random
from statistics import median

RESAMPLES = 4000


def bootstrap_interval(values, seed=1, level=0.95):
    """The percentile interval of the median of `values`; the same seed gives the same interval."""
    draw = random.Random(seed)
    medians = sorted(median(draw.choices(values, k=len(values))) for _ in range(RESAMPLES))
    tail = (1 - level) / 2
    return medians[int(tail * RESAMPLES)], medians[int((1 - tail) * RESAMPLES) - 1]


def ratios(ours, theirs):
    """Round by round; a round that either missed is left out."""
    return [a / b for a, b in zip(ours, theirs) if a is not None and b]


def present(values):
    """The rounds that were measured."""
    return [value for value in values if value is not None]
