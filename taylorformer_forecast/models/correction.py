"""A pretrained network that corrects the statistical combination: locations and widths of all steps at once.

Series of any length, season and horizon become tokens without units: patches of the latest values and of
their one-step errors, and one token for each step ahead that holds the forecasts of all families of members
but seasonal autoregression.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from taylorformer_forecast.baselines.combination import AtOrigins, CombinationFit
from taylorformer_forecast.baselines.errors import BASE
from taylorformer_forecast.baselines.families import FAMILIES
from taylorformer_forecast.baselines.few_values import nearly_lines
from taylorformer_forecast.baselines.forecast import Correction
from taylorformer_forecast.defaults import (
    CORRECTION_SHIFT,
    CORRECTION_WIDTH,
    FARTHEST_FAMILY,
    SEEN_VALUES,
)

__all__ = ["CorrectionFeatures", "CorrectionNet", "correction_features"]

PATCH = 4  # values of a token
MOST_CORRECTED_STEPS = 1024  # by themselves; later steps as the last: memory grows with the square
N_PHASES = 5  # sine and cosine of a season and of its half, and whether there is one
# Families that the network sees, in the order of its files; it does not need the others.
SEEN = [FAMILIES.index(name) for name in ("smoothing", "theta", "damped trend", "seasonal naive")]
DIM_VALUES = PATCH * (5 + N_PHASES)
N_OF_STEP = 5  # location, scale, distances of the lower and the upper bound, and how far ahead
DIM_STEP = N_OF_STEP + 5 + 2 * len(SEEN) + N_PHASES + len(BASE)
SIGNED_VALUES = 2  # features of a value that change their sign with it, the first ones
BOUNDED = N_OF_STEP + len(SEEN) + N_PHASES + 2  # feature of a step: whether values are never negative


@dataclass(frozen=True)
class CorrectionFeatures:
    """What the network sees of B series at K origins each, N = B * K.

    Parameters
    ----------
    values : Tensor of shape (N, P, DIM_VALUES)
        Patches of the latest values.
    seen : bool Tensor of shape (N, P)
        Patches with a value.
    steps : Tensor of shape (N, H, DIM_STEP)
        Steps ahead.
    families : Tensor of shape (N, H, F)
        Forecasts of families relative to the combination, in scales of the step.
    """

    values: Float[Tensor, "N P V"]
    seen: Bool[Tensor, "N P"]
    steps: Float[Tensor, "N H S"]
    families: Float[Tensor, "N H F"]

    @property
    def unbounded(self) -> Bool[Tensor, " N"]:
        """Series that may be negative."""
        return self.steps[:, 0, BOUNDED] == 0

    def mirrored(self, rows: Bool[Tensor, " N"]) -> CorrectionFeatures:
        """What the network sees of the same series with the other sign, of some rows.

        Nearly so, where early origins took the values for positive.
        """
        values, steps = self.values[rows].unflatten(2, (PATCH, -1)), self.steps[rows]
        values = torch.cat([-values[..., :SIGNED_VALUES], values[..., SIGNED_VALUES:]], -1)
        loc, scale, low, high, ahead = (steps[..., k : k + 1] for k in range(N_OF_STEP))
        end = N_OF_STEP + len(SEEN)
        parts = [-loc, scale, high, low, ahead, -steps[..., N_OF_STEP:end], steps[..., end:]]
        return CorrectionFeatures(
            values.flatten(2), self.seen[rows], torch.cat(parts, -1), -self.families[rows]
        )


def _phases(t: Tensor, season: int) -> Tensor:
    """Phases of the season at times in steps; zeros without a season."""
    if season < 2:
        return t.new_zeros(*t.shape, N_PHASES)
    angle = 2 * math.pi * t / season
    waves = [angle.sin(), angle.cos(), (2 * angle).sin(), (2 * angle).cos()]
    return torch.stack([*waves, torch.ones_like(t)], -1)


def _log_ratio(value: Tensor, unit: Tensor) -> Tensor:
    """Logarithm of a ratio of scales, bounded: hardly any was farther in training."""
    return (value / unit).clamp_min(1e-30).log().clamp(-5.0, 5.0)


def correction_features(fit: CombinationFit, origins: Int[Tensor, "B K"]) -> CorrectionFeatures:
    """Turn what was fitted into tokens, at origins that have a value.

    Parameters
    ----------
    fit : CombinationFit
        Of B series of n points.
    origins : int Tensor of shape (B, K)
        Positions of the last known values.

    Returns
    -------
    CorrectionFeatures
        In single precision.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.combination import fit_combination
    >>> from taylorformer_forecast.models.correction import correction_features
    >>> y = torch.tensor([1.0, 3.0, 2.0, 4.0]).repeat(5)[None].double()
    >>> found = correction_features(fit_combination(y, 3, (4,)), torch.tensor([[18, 19]]))
    >>> found.values.shape, found.steps.shape
    (torch.Size([2, 5, 40]), torch.Size([2, 3, 28]))
    """
    at = fit.at(origins)
    reference, unit = at.loc[..., :1], at.scale[..., :1]
    values, seen = _value_tokens(fit, origins, reference, unit)
    families = (at.families[..., SEEN] - at.loc[..., None]) / at.scale[..., None]
    tokens = _step_tokens(fit, at, origins, families.asinh())
    return CorrectionFeatures(
        values.flatten(0, 1).float(),
        seen.flatten(0, 1),
        tokens.flatten(0, 1).float(),
        families.flatten(0, 1).float(),
    )


def _value_tokens(
    fit: CombinationFit, origins: Int[Tensor, "B K"], reference: Tensor, unit: Tensor
) -> tuple[Float[Tensor, "B K P V"], Bool[Tensor, "B K P"]]:
    """Patches of the latest values, relative to the first forecast, and their one-step errors."""
    n = fit.clean.shape[1]
    length = min(SEEN_VALUES, -(-n // PATCH) * PATCH)
    age = torch.arange(length - 1, -1, -1, device=origins.device)
    index = origins[..., None] - age
    inside, index = index >= 0, index.clamp_min(0)

    def latest(x: Float[Tensor, "B n"]) -> Float[Tensor, "B K L"]:
        return x[:, None].expand(-1, origins.shape[1], -1).gather(2, index)

    y = latest(fit.clean)
    observed = inside & ~y.isnan()
    # Of the error of each value, from the origin before it.
    size, error = (torch.cat([x[:, :1], x[:, :-1]], 1) for x in (fit.scale[..., 0], fit.error[..., 0]))
    error = torch.nan_to_num(error / size).clamp(-30, 30)
    age = age.to(y)
    channels = torch.stack(
        [
            torch.where(observed, ((torch.nan_to_num(y) - reference) / unit).asinh(), 0.0),
            torch.where(observed, latest(error).asinh(), 0.0),
            torch.where(observed, _log_ratio(latest(size), unit), 0.0),
            observed.to(y),
            (age.log1p() / 5).expand_as(y),
        ],
        -1,
    )
    phases = _phases(-age, fit.season).expand(*channels.shape[:-1], -1)
    tokens = torch.cat([channels, phases], -1).unflatten(2, (-1, PATCH)).flatten(3)
    return tokens, observed.unflatten(2, (-1, PATCH)).any(-1)


def _step_tokens(
    fit: CombinationFit, at: AtOrigins, origins: Int[Tensor, "B K"], families: Tensor
) -> Float[Tensor, "B K H S"]:
    """Steps ahead: what was forecast, and what is known of the series."""
    reference, unit, size = at.loc[..., :1], at.scale[..., :1], at.loc.shape
    count = (~fit.clean.isnan()).cumsum(1).gather(1, origins).clamp_min(1).to(at.loc)
    ahead = torch.arange(1, size[2] + 1).to(at.loc)
    series = torch.stack(
        [
            count.log() / 5,
            at.seasonal,
            (at.low[..., 0] >= 0).to(at.loc),
            torch.full_like(count, math.log(max(fit.season, 1)) / 4),
            _log_ratio(unit, reference.abs().clamp_min(1e-6))[..., 0] / 4,
        ],
        -1,
    )
    shape = fit.error_quantiles[:, None].expand(-1, size[1], -1)
    series = torch.cat([series, at.weights[..., SEEN], shape], -1)[:, :, None].expand(-1, -1, size[2], -1)
    steps = torch.stack(
        [
            ((at.loc - reference) / unit).asinh(),
            _log_ratio(at.scale, unit),
            ((at.loc - at.low) / at.scale).asinh() / 3,
            ((at.high - at.loc) / at.scale).asinh() / 3,
            (ahead.log() / 4).expand(size),
        ],
        -1,
    )
    phases = _phases(ahead, fit.season).expand(*size, -1)
    return torch.cat([steps, families, phases, series], -1)


class CorrectionNet(nn.Module):
    """A transformer over patches of a series and the steps ahead, without units.

    Before training it changes nothing.

    Parameters
    ----------
    d_model : int, default=64
        Width.
    n_heads : int, default=4
        Attention heads.
    n_layers : int, default=4
        Layers.
    weight : float, default=1.0
        Part that :meth:`correct` takes, unless another is asked for.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.combination import fit_combination
    >>> from taylorformer_forecast.models.correction import CorrectionNet
    >>> y = torch.tensor([1.0, 3.0, 2.0, 4.0]).repeat(5)[None].double()
    >>> net = CorrectionNet(d_model=8, n_heads=2, n_layers=1).eval()
    >>> found = net.correct(fit_combination(y, 3, (4,)))
    >>> found.shift.tolist(), found.below.tolist()
    ([[0.0, 0.0, 0.0]], [[1.0, 1.0, 1.0]])
    """

    def __init__(self, d_model: int = 64, n_heads: int = 4, n_layers: int = 4, weight: float = 1.0) -> None:
        super().__init__()
        self.sizes = {"d_model": d_model, "n_heads": n_heads, "n_layers": n_layers}
        self.weight = weight
        self.embed_values = nn.Linear(DIM_VALUES, d_model)
        self.embed_steps = nn.Linear(DIM_STEP, d_model)
        layer = nn.TransformerEncoderLayer(
            d_model, n_heads, 4 * d_model, 0.0, "gelu", batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(
            layer, n_layers, nn.LayerNorm(d_model), enable_nested_tensor=False
        )
        self.to_params = nn.Linear(d_model, 3 + len(SEEN))
        nn.init.zeros_(self.to_params.weight)
        nn.init.zeros_(self.to_params.bias)

    def forward(self, features: CorrectionFeatures) -> Correction:
        """Correct the combination at every origin, wholly.

        Parameters
        ----------
        features : CorrectionFeatures
            Of N origins.

        Returns
        -------
        Correction
            Of shape (N, H).
        """
        dtype = self.to_params.weight.dtype
        values, steps = features.values.to(dtype), features.steps.to(dtype)
        x = torch.cat([self.embed_values(values), self.embed_steps(steps)], 1)
        hidden = ~torch.cat([features.seen, features.seen.new_ones(features.steps.shape[:2])], 1)
        # A float mask keeps the order of sums the same for every batch.
        mask = torch.zeros(hidden.shape, dtype=x.dtype, device=x.device).masked_fill(hidden, -torch.inf)
        x = self.layers(x, src_key_padding_mask=mask)[:, features.values.shape[1] :]
        params = self.to_params(x)
        below, above = (
            (CORRECTION_WIDTH * torch.tanh(params[..., k] / CORRECTION_WIDTH)).exp() for k in (0, 1)
        )
        followed = torch.tanh(params[..., 3:]) * features.families.clamp(-FARTHEST_FAMILY, FARTHEST_FAMILY)
        shift = CORRECTION_SHIFT * torch.tanh(params[..., 2] / CORRECTION_SHIFT) + followed.sum(-1)
        return Correction(shift, below, above)

    @torch.no_grad()
    def correct(self, fit: CombinationFit, weight: float | None = None) -> Correction:
        """Correct the combination at the end of all series; steps far ahead as the last that is looked at.

        Series that may be negative are corrected as their mirror images are: the network has seen more series
        that rise than fall.
        """
        ends = torch.full((len(fit.clean), 1), fit.clean.shape[1] - 1, device=fit.clean.device)
        seen, once = correction_features(fit, ends), (~fit.clean.isnan()).sum(1) < 2 * fit.season
        lines = once & nearly_lines(fit.clean) if bool(once.any()) else once
        if bool(lines.any()):  # part of a line would be taken for a season
            plain = correction_features(replace(fit, season=1), ends)
            seen.values[lines], seen.steps[lines] = plain.values[lines], plain.steps[lines]
        near = slice(MOST_CORRECTED_STEPS)
        with torch.autocast(seen.steps.device.type, enabled=False):  # Lightning's mixed precision too
            seen = replace(seen, steps=seen.steps[:, near], families=seen.families[:, near])
            found, rows = self(seen), seen.unbounded
            if bool(rows.any()):
                other = self(seen.mirrored(rows))
                found.shift[rows] = (found.shift[rows] - other.shift) / 2
                below, above = found.below[rows] * other.above, found.above[rows] * other.below
                found.below[rows], found.above[rows] = below.sqrt(), above.sqrt()
        step = torch.arange(fit.loc.shape[2], device=fit.clean.device).clamp_max(MOST_CORRECTED_STEPS - 1)
        whole = Correction(*(part[:, step] for part in (found.shift, found.below, found.above)))
        part = self.weight if weight is None else weight
        return whole.partly(part, part)
