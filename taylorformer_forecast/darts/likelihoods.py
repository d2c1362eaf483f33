"""Likelihoods of the darts models: any registered family, and how networks predict for any of darts' own."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from darts.utils.likelihood_models.base import LikelihoodType
from darts.utils.likelihood_models.torch import (
    CauchyLikelihood,
    DirichletLikelihood,
    ExponentialLikelihood,
    GammaLikelihood,
    GaussianLikelihood,
    GeometricLikelihood,
    GumbelLikelihood,
    HalfNormalLikelihood,
    LaplaceLikelihood,
    LogNormalLikelihood,
    NegativeBinomialLikelihood,
    PoissonLikelihood,
    QuantileRegression,
    TorchLikelihood,
    WeibullLikelihood,
)
from torch import Tensor
from torch.distributions import Distribution

from taylorformer_forecast.core.families import FAMILIES, Components, Family, draw, find_family
from taylorformer_forecast.darts._adapters import (
    LikelihoodFamily,
    LocationScaleAdapter,
    PointAdapter,
    QuantileAdapter,
    RegisteredAdapter,
)
from taylorformer_forecast.darts._count_adapters import (
    CountAdapter,
    GeometricAdapter,
    LevelAdapter,
    LogLevelAdapter,
)


class FamilyLikelihood(TorchLikelihood):
    """A family of the package's registry as a likelihood of its darts models.

    Parameters
    ----------
    distribution : str
        Name in :data:`~taylorformer_forecast.core.families.FAMILIES`.
    names : sequence of str, optional
        Names of the parameters; by default those of the family.

    Raises
    ------
    ValueError
        If there is no family of that name, as for a family itself, which darts could not load, or it has
        another number of parameters.

    Examples
    --------
    >>> from taylorformer_forecast.darts import FamilyLikelihood
    >>> FamilyLikelihood("normal").parameter_names
    ['loc', 'scale']
    >>> FamilyLikelihood("mixture").num_parameters  # location, scale and weight of three components
    9
    """

    def __init__(self, distribution: str, names: Sequence[str] | None = None) -> None:
        # The family is looked up whenever it is needed: what darts saves are strings, safe to load.
        if not isinstance(distribution, str):
            raise ValueError(f"distribution={distribution!r}, but it must be the name of a registered family")
        self.distribution = distribution
        found = self._like()
        self._layout = {name: value.shape[-1] for name, value in found.tensors().items()}
        own = [f"{name}{k}" if n > 1 else name for name, n in self._layout.items() for k in range(n)]
        names = own if names is None else list(names)
        if len(names) != len(own):
            raise ValueError(f"names={names}, but {distribution} has {len(own)} parameters: {', '.join(own)}")
        super().__init__(LikelihoodType.Gaussian, names)  # darts has no type for others

    @property
    def family(self) -> Family:
        """The family."""
        return find_family(self.distribution)

    def _like(self) -> Components:
        """Components of one distribution of the family."""
        raw = torch.zeros(1, 1, self.family.n_params)
        return self.family.components(self.family(raw, raw[..., 0]))

    def components(self, parameters: Tensor) -> Components:
        """Components that parameters (..., P) describe."""
        split = parameters.split(list(self._layout.values()), -1)
        return self._like().with_tensors(dict(zip(self._layout, split, strict=True)))

    def _params_from_output(self, model_output: Tensor) -> tuple[Tensor, ...]:
        # The family has made scales positive, and parameters are in the units of the data.
        return model_output.unbind(-1)

    def _distr_from_params(self, params: tuple[Tensor, ...]) -> Distribution:
        return self.family.rebuild(self.components(torch.stack(params, -1)))

    def _nllloss(
        self, params_out: tuple[Tensor, ...], target: Tensor, sample_weight: Tensor | None
    ) -> Tensor:
        loss = self.family.loss(self._distr_from_params(params_out), target)
        return (loss if sample_weight is None else loss * sample_weight).mean()

    def sample(self, model_output: Tensor) -> Tensor:
        """Draw from the distribution, shape (B, T, C)."""
        return draw(self._distr_from_params(self._params_from_output(model_output)))


class StudentTLikelihood(FamilyLikelihood):
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
        super().__init__("studentt", names=("mu", "sigma", "nu"))


def _refuse(likelihood: TorchLikelihood) -> LikelihoodFamily:
    raise ValueError(
        f"{type(likelihood).__name__} joins the components of a series, "
        f"but each has a distribution of its own"
    )


# What networks need of darts' likelihoods, by class; a subclass is served like the class it derives from.
ADAPTERS: dict[type, Callable[..., LikelihoodFamily]] = {
    type(None): PointAdapter,
    FamilyLikelihood: RegisteredAdapter,
    GaussianLikelihood: partial(LocationScaleAdapter, variance=1.0),
    LaplaceLikelihood: partial(LocationScaleAdapter, variance=2.0),
    GumbelLikelihood: partial(LocationScaleAdapter, variance=math.pi**2 / 6, mean=float(np.euler_gamma)),
    CauchyLikelihood: partial(LocationScaleAdapter, variance=None),
    QuantileRegression: QuantileAdapter,
    PoissonLikelihood: CountAdapter,
    NegativeBinomialLikelihood: partial(CountAdapter, powers=(1, 0)),
    ExponentialLikelihood: partial(LevelAdapter, powers=(-1,)),
    GeometricLikelihood: GeometricAdapter,
    HalfNormalLikelihood: LevelAdapter,
    GammaLikelihood: partial(LevelAdapter, powers=(0, -1)),
    WeibullLikelihood: partial(LevelAdapter, powers=(1, 0)),
    LogNormalLikelihood: LogLevelAdapter,
    DirichletLikelihood: _refuse,
    TorchLikelihood: LikelihoodFamily,
}


def family_of_likelihood(likelihood: TorchLikelihood | None, unit: float = 1.0) -> LikelihoodFamily:
    """Return the family of a likelihood of darts or of the package.

    Parameters
    ----------
    likelihood : TorchLikelihood or None
        None for point forecasts.
    unit : float, default=1.0
        Level of the training series, for likelihoods that have one.

    Returns
    -------
    LikelihoodFamily
        What networks need of it.

    Raises
    ------
    ValueError
        If the likelihood joins the components of a series, or is none.

    Examples
    --------
    >>> from taylorformer_forecast.darts import StudentTLikelihood
    >>> from taylorformer_forecast.darts.likelihoods import family_of_likelihood
    >>> family_of_likelihood(StudentTLikelihood()).n_params
    3
    """
    kind = next((kind for kind in type(likelihood).__mro__ if kind in ADAPTERS), None)
    if kind is None:
        named = isinstance(likelihood, str) and likelihood in FAMILIES
        instance = f"FamilyLikelihood({likelihood!r})" if named else "QuantileRegression()"
        raise ValueError(
            f"likelihood={likelihood!r}, but it must be an instance of a likelihood of darts, as {instance}"
        )
    family = ADAPTERS[kind](likelihood=likelihood)
    return replace(family, unit=unit) if family.has_level else family
