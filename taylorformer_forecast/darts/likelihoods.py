"""Likelihoods of the darts models: the package's own, and how networks speak to any of darts'."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from darts.utils.likelihood_models.base import LikelihoodType
from darts.utils.likelihood_models.torch import (
    CauchyLikelihood,
    DirichletLikelihood,
    GaussianLikelihood,
    GumbelLikelihood,
    LaplaceLikelihood,
    QuantileRegression,
    TorchLikelihood,
)
from torch import Tensor
from torch.distributions import Distribution, StudentT

from taylorformer_forecast.core.heads import Components, Conditional, StudentTHead, draw

__all__ = ["LikelihoodHead", "StudentTLikelihood"]

UNIT_SCALE = math.log(math.expm1(1.0))  # softplus of it is 1

# Variance of each location-scale family at scale 1; None where there is none.
VARIANCE: dict[type[TorchLikelihood], float | None] = {
    GaussianLikelihood: 1.0,
    LaplaceLikelihood: 2.0,
    GumbelLikelihood: math.pi**2 / 6,
    CauchyLikelihood: None,
}


class StudentTLikelihood(TorchLikelihood):
    """Student-t with free location, scale and degrees of freedom; the default of the package's models.

    - Univariate continuous distribution, support: the real numbers.
    - Parameters: location ``mu``, scale ``sigma > 0``, degrees of freedom ``nu > 2``, so that the variance
      ``sigma**2 * nu / (nu - 2)`` exists.

    Heavier tails than the Gaussian's keep a few surprising values from widening all intervals.

    Examples
    --------
    >>> from taylorformer_forecast.darts import StudentTLikelihood
    >>> StudentTLikelihood().parameter_names
    ['mu', 'sigma', 'nu']
    """

    def __init__(self) -> None:
        super().__init__(LikelihoodType.Gaussian, ["mu", "sigma", "nu"])  # darts has no type of this name

    def _params_from_output(self, model_output: Tensor) -> tuple[Tensor, ...]:
        # The networks' own head has made them positive, and they are in the units of the data.
        return model_output.unbind(-1)

    def _distr_from_params(self, params: tuple[Tensor, ...]) -> Distribution:
        loc, scale, df = params
        return StudentT(df, loc, scale, validate_args=False)

    def sample(self, model_output: Tensor) -> Tensor:
        """Draw from the distribution, shape (B, T, C)."""
        return self._distr_from_params(self._params_from_output(model_output)).sample()


class LikelihoodConditional(Conditional):
    """Distribution of one of darts' likelihoods, or a point where there is none.

    Parameters
    ----------
    likelihood : TorchLikelihood or None
        What draws; without one, the location itself is predicted.
    raw : Tensor of shape (..., D, P)
        Raw parameters in the units of the network, around the anchor where there is a location.
    """

    def __init__(self, likelihood: TorchLikelihood | None, raw: Tensor) -> None:
        super().__init__(raw.shape[:-1], validate_args=False)
        self.likelihood, self.raw = likelihood, raw

    def draw(self, generator: torch.Generator | None = None, noise: Tensor | None = None) -> Tensor:
        """Draw with the likelihood's own sampler, which knows torch's global generator only, and no noise."""
        if isinstance(self.likelihood, StudentTLikelihood):
            return draw(self.components(), generator, noise).to(self.raw.dtype)
        return self.raw[..., 0] if self.likelihood is None else self.likelihood.sample(self.raw)

    def components(self) -> Components:
        """Natural location and scale; where a likelihood has none, its raw parameters as they are."""
        if isinstance(self.likelihood, StudentTLikelihood):
            loc, scale, df = self.raw.split(1, -1)
            return Components(loc, scale, df=df)
        if type(self.likelihood) in VARIANCE:
            return Components(self.raw[..., :1], F.softplus(self.raw[..., 1:]))
        return Components(self.raw, torch.zeros_like(self.raw))

    def center(self) -> Tensor:
        """Value that stands for the distribution where a single path is followed."""
        if type(self.likelihood) in (type(None), StudentTLikelihood, *VARIANCE):
            return self.raw[..., 0]
        if isinstance(self.likelihood, QuantileRegression):
            return self.raw[..., self.likelihood.quantiles.index(0.5)]
        params = self.likelihood._params_from_output(self.raw)
        return self.likelihood._distr_from_params(params).mean


class LikelihoodHead:
    """Head of a network that serves a darts likelihood.

    Networks work in scaled units and predict around an anchor. Families with a location and a scale, and
    quantiles, are moved and stretched parameter by parameter, so that normalising a window leaves the
    likelihood intact; where raw parameters are zero, scales are 1 and quantiles those of a Gaussian. Others
    (counts, probabilities, positive values) have a natural unit: their windows are not normalised and their
    parameters have no anchor.

    Parameters
    ----------
    likelihood : TorchLikelihood or None
        None for point forecasts.

    Raises
    ------
    ValueError
        If the likelihood joins the components of a series.
    """

    def __init__(self, likelihood: TorchLikelihood | None) -> None:
        if isinstance(likelihood, DirichletLikelihood):
            raise ValueError(
                "DirichletLikelihood joins the components of a series, but each has a distribution of its own"
            )
        self.likelihood = likelihood
        self.n_params = 1 if likelihood is None else likelihood.num_parameters

    @property
    def has_location(self) -> bool:
        """Whether values may be moved and stretched."""
        kinds = (*VARIANCE, type(None), QuantileRegression, StudentTLikelihood)
        return type(self.likelihood) in kinds

    def __call__(self, raw: Tensor, anchor: Tensor, unit: Tensor | float = 1.0) -> LikelihoodConditional:
        """Distribution with batch shape (..., D)."""
        if isinstance(self.likelihood, StudentTLikelihood):
            df, loc, scale = StudentTHead().params(raw, anchor, unit)
            raw = torch.stack([loc, scale, df], -1)
        elif type(self.likelihood) in VARIANCE:
            unit = torch.as_tensor(unit)[..., None]
            scale = unit * F.softplus(raw[..., 1:] + UNIT_SCALE)
            raw = torch.cat([anchor[..., None] + unit * raw[..., :1], _inverse_softplus(scale)], -1)
        elif self.has_location:
            if isinstance(self.likelihood, QuantileRegression):
                levels = torch.tensor(self.likelihood.quantiles, dtype=torch.float64)
                raw = raw + torch.special.ndtri(levels).to(raw)
            raw = anchor[..., None] + torch.as_tensor(unit)[..., None] * raw
        return LikelihoodConditional(self.likelihood, raw)

    def to_raw(self, parts: Components) -> Tensor:
        """Raw parameters (..., D, P) that the likelihood turns into these components."""
        if parts.df is not None:
            return torch.cat([parts.loc, parts.scale, parts.df], -1)
        if type(self.likelihood) in VARIANCE:
            return torch.cat([parts.loc, _inverse_softplus(parts.scale)], -1)
        return parts.loc

    def marginal(self, parts: Components, paths: Tensor) -> Tensor:
        """Parameters of the marginal distribution of each step, from those along sample paths.

        Location and scale have the mean and variance of the mixture of all paths, quantiles are those of the
        paths, and other parameters are averaged.

        Parameters
        ----------
        parts : Components
            Along the paths, (B, S, T, D, K), or (B, 1, T, D, K) where all paths share them.
        paths : Tensor of shape (B, S, T, D)
            The paths.

        Returns
        -------
        Tensor
            Raw parameters, (B, T, D, P).
        """
        if parts.loc.shape[1] == 1:  # all paths share it
            return self.to_raw(parts)[:, 0]
        if isinstance(self.likelihood, QuantileRegression):
            levels = paths.new_tensor(self.likelihood.quantiles)
            return paths.quantile(levels, dim=1).movedim(0, -1)
        if type(self.likelihood) in VARIANCE or parts.df is not None:
            unit: Any = VARIANCE[type(self.likelihood)] if parts.df is None else parts.df / (parts.df - 2.0)
            loc, scale = parts.loc.mean(1), parts.scale.mean(1)
            if unit is not None:
                variance = (unit * parts.scale.square()).mean(1) + parts.loc.var(1, unbiased=False)
                df = None if parts.df is None else parts.df.mean(1)
                scale = (variance / (unit if df is None else df / (df - 2.0))).sqrt()
            else:
                df = None
            return self.to_raw(Components(loc, scale, df=df))
        return parts.loc.mean(1)


def _inverse_softplus(scale: Tensor) -> Tensor:
    """Raw number whose softplus is the scale, without overflow."""
    return scale + (-torch.expm1(-scale)).log()
