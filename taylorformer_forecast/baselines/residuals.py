"""Errors of a linear forecast: their scale, and how one follows from those before it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from taylorformer_forecast.defaults import ERROR_LAG_PENALTY, POOLED_ERROR_COUNT, SCALE_FLOOR

SUMMED_AT_ONCE = 2**22  # numbers of a sum that are held at once


@dataclass(frozen=True)
class Residuals:
    """Errors of a linear forecast on training windows.

    Parameters
    ----------
    error : Tensor of shape (n, H)
        Value minus forecast.
    observed : bool Tensor of shape (n, H)
        Which of them are known.
    """

    error: Float[Tensor, "n H"]
    observed: Bool[Tensor, "n H"]

    def autoregression(self, n_lags: int, horizon: int) -> Float[Tensor, "horizon K"]:
        """Weights of the K errors before in the error of every step, the earliest first.

        One autoregression by least squares serves all steps; how much of it a step takes is the step's own,
        such that paths drawn with these weights, and with what they leave as noise, spread at every step as
        the errors themselves do. An autoregression alone may make them drift apart, or hold them together.
        """
        return _repeat_last(self._path(n_lags)[0], horizon)

    def dependence(self, n_lags: int, horizon: int) -> tuple[Tensor, Tensor, Tensor]:
        """How standardised errors of a step follow from those before it, such that each has variance 1.

        Returns
        -------
        weights : Tensor of shape (horizon, K)
            Of the K before, the earliest first.
        innovation_scale : Tensor of shape (horizon,)
            Standard deviation of the innovation of each.
        lag_one : Tensor of shape (horizon,)
            Correlation of each with the one before it.
        """
        weights, new, lag_one = self._path(n_lags)
        deviation = self._square().clamp_min(1e-12).sqrt()
        before = lagged(deviation[None], n_lags)[0]
        return (
            _repeat_last(weights * before / deviation[:, None], horizon),
            _repeat_last((new / deviation).clamp(0.0, 1.0), horizon),
            _repeat_last(lag_one, horizon),
        )

    def _path(self, n_lags: int) -> tuple[Float[Tensor, "H K"], Float[Tensor, " H"], Float[Tensor, " H"]]:
        """Weights, deviations of what they leave, and lag-one correlations, along a path."""
        common = self._common(n_lags)
        predicted = self._predicted(common) * self.observed
        seen = self.observed.sum(0)
        with_error = self._mean(predicted * self.error, predicted.square())
        square = self._mean(predicted.square())
        total = self._square()
        weights = torch.zeros(len(seen), n_lags).to(common)
        new, lag_one = torch.zeros(2, len(seen)).to(common)
        covariance = torch.zeros(n_lags, n_lags).to(common)  # of the last K errors of a path
        for step in range(len(seen)):
            predicted_variance = common @ covariance @ common
            # With a share s of the autoregression the variance of a path is s**2 * predicted_variance + total
            # - 2 * s * with_error + s**2 * square. It is the total again for this share; by least squares
            # it were with_error / square, the same where paths vary as the errors do.
            share = (2 * with_error[step] / (predicted_variance + square[step]).clamp_min(1e-12)).clamp(
                0.0, 2.0
            )
            weights[step] = share * common
            new[step] = (total[step] - share**2 * predicted_variance).clamp_min(0.0).sqrt()
            cross = weights[step] @ covariance
            lag_one[step] = cross[-1] / (covariance[-1, -1] * total[step]).clamp_min(1e-24).sqrt()
            covariance = F.pad(covariance[1:, 1:], (0, 1, 0, 1))
            covariance[-1, :-1] = covariance[:-1, -1] = cross[1:]
            covariance[-1, -1] = total[step]
        return weights, new, lag_one.clamp(-1.0, 1.0)

    def _common(self, n_lags: int) -> Float[Tensor, " K"]:
        """Weights of the K errors before, by least squares over all steps, in chunks of windows."""
        moment, product = torch.zeros(n_lags, n_lags).to(self.error), torch.zeros(n_lags).to(self.error)
        rows = max(1, SUMMED_AT_ONCE // (n_lags * self.error.shape[1]))
        for error, observed in zip(self.error.split(rows), self.observed.split(rows), strict=True):
            x = lagged(error * observed, n_lags)[observed]
            moment += x.mT @ x
            product += x.mT @ error[observed]
        moment.diagonal().add_(ERROR_LAG_PENALTY * moment.diagonal().mean() + 1e-12)
        return torch.linalg.solve(moment, product)

    def _predicted(self, weights: Float[Tensor, "*H K"]) -> Float[Tensor, "n H"]:
        """Errors that follow from the K before each, where there are none from zero."""
        lags = lagged(self.error * self.observed, weights.shape[-1])
        predicted = torch.zeros_like(self.error)
        for lag, weight in zip(lags.unbind(-1), weights.unbind(-1), strict=True):
            predicted.addcmul_(lag, weight)
        return predicted

    def after(self, weights: Float[Tensor, "H K"]) -> Residuals:
        """What an autoregression with these weights leaves."""
        return Residuals(self.error - self._predicted(weights[: self.error.shape[1]]), self.observed)

    def _square(self, power: float = 2.0) -> Float[Tensor, " H"]:
        """Mean square (or another power) of the errors of every step; few are pooled with all steps."""
        return self._mean(self.error.abs().pow(power) * self.observed)

    def _mean(self, values: Float[Tensor, "n H"], alike: Float[Tensor, "n H"] | None = None) -> Tensor:
        """Mean of every step, of values that are zero where nothing was observed.

        Few windows say little: they are pooled with the mean over all steps, of the values or of others.
        """
        seen = self.observed.sum(0)
        pooled = (values if alike is None else alike).sum() / seen.sum()
        return (values.sum(0) + POOLED_ERROR_COUNT * pooled) / (seen + POOLED_ERROR_COUNT)

    def log_scale(self, horizon: int) -> Float[Tensor, " horizon"]:
        """Logarithm of the scale of the errors of every step.

        Half-way between the root mean square, which follows few large errors, and what the mean absolute
        error of a Gaussian would say, which does not know of them.
        """
        square, absolute = self._square(), self._square(1.0) * math.sqrt(math.pi / 2)
        scale = (square.sqrt() * absolute).sqrt().clamp_min(SCALE_FLOOR)
        return _repeat_last(scale.log(), horizon)


def _repeat_last(steps: Float[Tensor, "H ..."], horizon: int) -> Float[Tensor, "horizon ..."]:
    """The same for more steps: the last goes on."""
    return torch.cat([steps, steps[-1:].expand(horizon - len(steps), *steps.shape[1:])])


def lagged(values: Float[Tensor, "B T"], n_lags: int) -> Float[Tensor, "B T K"]:
    """The K values before each along the second axis, the earliest first, zero where there are none.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.residuals import lagged
    >>> lagged(torch.tensor([[1.0, 2.0, 3.0]]), 2).tolist()
    [[[0.0, 0.0], [0.0, 1.0], [1.0, 2.0]]]
    """
    return F.pad(values, (n_lags, 0))[:, :-1].unfold(1, n_lags, 1)
