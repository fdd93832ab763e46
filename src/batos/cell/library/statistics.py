"""The part of `statistics` that methods use: the same names and results, by floats and without fractions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

StatisticsError = ValueError


def _floats(data: Iterable[float], least: int, what: str) -> list[float]:
    values = list(data)
    if len(values) < least:
        raise ValueError(f"{what} requires at least {least} data point{'s' if least > 1 else ''}")
    return values


def mean(data: Iterable[float]) -> float:
    """Return the arithmetic mean: an int if all values are ints and it is whole, a Decimal if all are Decimals."""
    values = _floats(data, 1, "mean")
    if any(isinstance(value, float) for value in values):
        return math.fsum(values) / len(values)
    total = sum(values)
    return total // len(values) if total % len(values) == 0 else total / len(values)


def fmean(data: Iterable[float], weights: Iterable[float] | None = None) -> float:
    """Return the mean as a float, weighted if weights are given."""
    values = _floats(data, 1, "fmean")
    if weights is None:
        return math.fsum(values) / len(values)
    shares = list(weights)
    if len(shares) != len(values):
        raise ValueError("data and weights must be the same length")
    return math.fsum([value * share for value, share in zip(values, shares, strict=True)]) / math.fsum(shares)


def geometric_mean(data: Iterable[float]) -> float:
    """Return the n-th root of the product."""
    values = _floats(data, 1, "geometric_mean")
    if min(values) <= 0:
        raise ValueError("geometric mean requires a non-empty dataset containing positive numbers")
    return math.exp(math.fsum([math.log(value) for value in values]) / len(values))


def harmonic_mean(data: Iterable[float]) -> float:
    """Return the reciprocal of the mean of reciprocals; 0 if a value is 0."""
    values = _floats(data, 1, "harmonic_mean")
    if min(values) < 0:
        raise ValueError("harmonic mean does not support negative values")
    if min(values) == 0:
        return 0
    return len(values) / math.fsum([1 / value for value in values])


def median(data: Iterable[float]) -> float:
    """Return the middle value, or the mean of the middle two."""
    values = sorted(_floats(data, 1, "median"))
    half = len(values) // 2
    if len(values) % 2:
        return values[half]
    return (values[half - 1] + values[half]) / 2


def median_low(data: Iterable[float]) -> float:
    """Return the smaller of the middle values."""
    values = sorted(_floats(data, 1, "median_low"))
    return values[(len(values) - 1) // 2]


def median_high(data: Iterable[float]) -> float:
    """Return the larger of the middle values."""
    values = sorted(_floats(data, 1, "median_high"))
    return values[len(values) // 2]


def multimode(data: Iterable[object]) -> list[object]:
    """List the most frequent values, in the order in which they first occur."""
    counts: dict[object, int] = {}
    for value in data:
        counts[value] = counts.get(value, 0) + 1
    most = max(counts.values(), default=0)
    return [value for value in counts if counts[value] == most]


def mode(data: Iterable[object]) -> object:
    """Return the most frequent value, the first of several."""
    found = multimode(data)
    if not found:
        raise ValueError("no mode for empty data")
    return found[0]


def _squares(values: list[float], middle: float | None) -> float:
    at = mean(values) if middle is None else middle
    return math.fsum([(value - at) ** 2 for value in values])


def variance(data: Iterable[float], xbar: float | None = None) -> float:
    """Return the variance of a sample."""
    values = _floats(data, 2, "variance")
    return _squares(values, xbar) / (len(values) - 1)


def pvariance(data: Iterable[float], mu: float | None = None) -> float:
    """Return the variance of a population."""
    values = _floats(data, 1, "pvariance")
    return _squares(values, mu) / len(values)


def stdev(data: Iterable[float], xbar: float | None = None) -> float:
    """Return the standard deviation of a sample."""
    values = _floats(data, 2, "stdev")
    return math.sqrt(_squares(values, xbar) / (len(values) - 1))


def pstdev(data: Iterable[float], mu: float | None = None) -> float:
    """Return the standard deviation of a population."""
    values = _floats(data, 1, "pstdev")
    return math.sqrt(_squares(values, mu) / len(values))


def quantiles(data: Iterable[float], n: int = 4, method: str = "exclusive") -> list[float]:
    """Return the n - 1 cut points of n intervals of equal probability. Give `n` by name."""
    values = sorted(_floats(data, 2, "quantiles"))
    found: list[float] = []
    size = len(values) - 1 if method == "inclusive" else len(values) + 1
    for cut in range(1, n):
        if method == "inclusive":
            at, share = divmod(cut * size, n)
            found.append((values[at] * (n - share) + values[at + 1] * share) / n)
        else:
            at = min(max(cut * size // n, 1), len(values) - 1)
            share = cut * size - at * n
            found.append((values[at - 1] * (n - share) + values[at] * share) / n)
    return found


def correlation(x: Sequence[float], y: Sequence[float]) -> float:
    """Return Pearson's coefficient of two equally long samples."""
    slope = _products(x, y)
    return slope / math.sqrt(_products(x, x) * _products(y, y))


def _products(x: Sequence[float], y: Sequence[float]) -> float:
    if len(x) != len(y) or len(x) < 2:
        raise ValueError("two equally long samples of at least two data points are required")
    mine, its = mean(x), mean(y)
    return math.fsum([(one - mine) * (other - its) for one, other in zip(x, y, strict=True)])


def linear_regression(x: Sequence[float], y: Sequence[float]) -> tuple[float, float]:
    """Return (slope, intercept) of the line of least squares."""
    slope = _products(x, y) / _products(x, x)
    return (slope, mean(y) - slope * mean(x))
