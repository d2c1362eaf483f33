"""The registry of families, and what it serves: distributions are drawn and taken apart by their family."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import partial
from inspect import getattr_static
from typing import Any

from torch import Tensor
from torch.distributions import Distribution

from taylorformer_forecast.core.families.base import SCALES, Components, Described, Family, Generator, Noise
from taylorformer_forecast.core.families.location_scale import LocationScaleFamily

FAMILIES: dict[str, Callable[..., Family]] = {}
_BY_KIND: dict[type[Distribution], Family] = {}
_OF_PARAMETERS = ("loss", "n_params", "distribution", "positive")  # asked of the family that was named
_COMPONENTS: dict[str, LocationScaleFamily] = {}  # that networks do not predict, but mixtures consist of


def register(name: str, family: type[Family], **options: Any) -> None:
    """Register a family by a name, which is then a ``distribution=`` of every forecaster.

    The first family with a class of distributions draws, moves and takes apart all distributions of that
    class, as long as a family with that class has a name. A later one may have another loss, and other
    parameters.

    Parameters
    ----------
    name : str
        The name.
    family : type
        A subclass of :class:`~taylorformer_forecast.core.families.base.Family`.
    **options
        Its arguments, other than ``scale``.

    Raises
    ------
    ValueError
        If the name is taken, if the family does to distributions what another one serves already, or if its
        class of distributions has no mean or variance.
    TypeError
        If the family is no class.

    Examples
    --------
    >>> from taylorformer_forecast.core.families import find_family, register
    >>> from taylorformer_forecast.core.families.mixture import MixtureFamily
    >>> register("mixture5", MixtureFamily, n_components=5)
    >>> find_family("mixture5").n_params
    15
    >>> from taylorformer_forecast.core.families import FAMILIES
    >>> del FAMILIES["mixture5"]
    """
    if name in FAMILIES:
        raise ValueError(f"there is a family named {name!r} already")
    if not (isinstance(family, type) and issubclass(family, Family)):
        raise TypeError(f"family={family!r}, but it must be a subclass of Family, not an instance")
    for moment in ("mean", "variance"):
        if getattr(family.kind, moment) is getattr(Distribution, moment):
            raise ValueError(f"{family.__name__}: {family.kind.__name__} distributions have no {moment}")
    new, named = family(**options), [*(make() for make in FAMILIES.values()), *_COMPONENTS.values()]
    if all(known.kind is not family.kind for known in named):
        _BY_KIND.pop(family.kind, None)
    served = type(_BY_KIND.setdefault(family.kind, new))
    if own := _own(family, served):
        raise ValueError(
            f"{family.__name__} has a {own[0]} of its own, but {served.__name__} serves all "
            f"{family.kind.__name__} distributions: give it another class of them as its kind"
        )
    FAMILIES[name] = partial(family, **options)


def _own(family: type[Family], served: type[Family]) -> list[str]:
    """Public methods and attributes of a class that differ from those of the one that serves it."""
    free = {*_OF_PARAMETERS, *(field.name for field in fields(served))}
    names = [name for name in dir(served) if not name.startswith("_") and name not in free]
    pairs = {name: (getattr_static(family, name, None), getattr_static(served, name)) for name in names}
    return [name for name, (one, other) in pairs.items() if one is not other and one != other]


def register_component(name: str, family: type[LocationScaleFamily]) -> None:
    """Register a family that mixtures consist of, and that no network predicts by itself."""
    _COMPONENTS[name] = _BY_KIND[family.kind] = family()


def find_family(distribution: object, scale: str = "exp") -> Family:
    """Return a family by its name in :data:`FAMILIES`; a family itself passes.

    Parameters
    ----------
    distribution : str or Family
        Name or family.
    scale : str, default="exp"
        How unconstrained scales of a named family become positive, a name in
        :data:`~taylorformer_forecast.core.families.base.SCALES`.

    Returns
    -------
    Family
        The family.

    Raises
    ------
    ValueError
        If there is no family or scale of that name.

    Examples
    --------
    >>> from taylorformer_forecast.core.families import find_family
    >>> find_family("normal", scale="bounded")
    NormalFamily(scale='bounded')
    """
    if isinstance(distribution, Family):
        return distribution
    if not (isinstance(distribution, str) and distribution in FAMILIES):
        raise ValueError(f"distribution={distribution!r} is not one of {sorted(FAMILIES)}")
    if scale not in SCALES:
        raise ValueError(f"scale={scale!r} is not one of {sorted(SCALES)}")
    return FAMILIES[distribution](scale=scale)


def find_component(family: str | Family) -> LocationScaleFamily:
    """Return the location-scale family that distributions of a family consist of.

    Parameters
    ----------
    family : str or Family
        Name or family.

    Returns
    -------
    LocationScaleFamily
        The family of the components.

    Raises
    ------
    ValueError
        If there is no family of that name.

    Examples
    --------
    >>> from taylorformer_forecast.core.families import find_component
    >>> find_component("quantile")
    SegmentFamily(scale='exp')
    """
    if isinstance(family, str) and family in _COMPONENTS:
        return _COMPONENTS[family]
    if isinstance(family, str) and family not in FAMILIES:
        raise ValueError(f"family={family!r} is not one of {sorted([*FAMILIES, *_COMPONENTS])}")
    component = find_family(family).component
    if not isinstance(component, LocationScaleFamily):
        raise ValueError(f"family={family!r} does not consist of a location-scale family")
    return component


def gives_points(distribution: object) -> bool:
    """Whether a family gives point forecasts, without intervals; False for what is no family.

    Examples
    --------
    >>> from taylorformer_forecast.core.families import gives_points
    >>> gives_points("mse"), gives_points("normal")
    (True, False)
    """
    known = isinstance(distribution, Family) or (isinstance(distribution, str) and distribution in FAMILIES)
    return known and find_family(distribution).is_point


def family_of(distribution: Distribution) -> Family:
    """Return the family of a distribution: what it carries itself, or the one registered for its class.

    Raises
    ------
    TypeError
        If there is none.

    Examples
    --------
    >>> from torch.distributions import Normal
    >>> from taylorformer_forecast.core.families import family_of
    >>> family_of(Normal(0.0, 1.0))
    NormalFamily(scale='exp')
    """
    if isinstance(distribution, Described):
        return distribution.family
    for kind in type(distribution).__mro__:
        if kind in _BY_KIND:
            return _BY_KIND[kind]
    raise TypeError(f"no family is registered for {type(distribution).__name__}: see families.register")


def components(distribution: Distribution) -> Components:
    """Take a distribution apart.

    Parameters
    ----------
    distribution : Distribution
        Of a registered family.

    Returns
    -------
    Components
        Its components, with an axis K added at the end.

    Raises
    ------
    TypeError
        If no family is registered for its class.

    Examples
    --------
    >>> import torch
    >>> from torch.distributions import Normal
    >>> from taylorformer_forecast.core.families import components
    >>> components(Normal(torch.zeros(5, 2), torch.ones(5, 2))).scale.shape
    torch.Size([5, 2, 1])
    """
    return family_of(distribution).components(distribution)


def affine(distribution: Distribution, loc: Tensor, factor: Tensor) -> Distribution:
    """Distribution of ``loc + factor * y``, of the same kind, if y has the given one.

    Parameters
    ----------
    distribution : Distribution
        Of a registered family.
    loc, factor : Tensor
        Broadcast to the batch shape; the factor is positive.

    Returns
    -------
    Distribution
        The distribution after the change of units.

    Raises
    ------
    TypeError
        If no family is registered for its class.

    Examples
    --------
    >>> import torch
    >>> from torch.distributions import Normal
    >>> from taylorformer_forecast.core.families import affine
    >>> affine(Normal(torch.tensor(1.0), 2.0), torch.tensor(10.0), torch.tensor(3.0))
    Normal(loc: 13.0, scale: 6.0)
    """
    return family_of(distribution).affine(distribution, loc, factor)


def point_forecast(distribution: Distribution) -> Tensor:
    """Point forecast of a distribution."""
    return family_of(distribution).point_forecast(distribution)


def draw(distribution: Distribution, generator: Generator = None, noise: Noise = None) -> Tensor:
    """Draw once from a distribution with a private random generator.

    ``torch.distributions`` samples from the global generator only; forecasters must leave that alone.

    Parameters
    ----------
    distribution : Distribution
        Of a registered family.
    generator : torch.Generator, optional
        Source of randomness; the global one by default.
    noise : Tensor, optional
        Standard Gaussian noise with the batch shape, large where the draw is to be large: for draws that
        depend on each other.

    Returns
    -------
    Tensor
        A draw with the distribution's batch shape.

    Examples
    --------
    >>> import torch
    >>> from torch.distributions import Normal
    >>> from taylorformer_forecast.core.families import draw
    >>> g = torch.Generator().manual_seed(0)
    >>> draw(Normal(torch.zeros(2), torch.ones(2)), g).shape
    torch.Size([2])
    """
    return family_of(distribution).sample(distribution, generator, noise)
