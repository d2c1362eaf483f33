"""Errors in the user's words: horizons and series that no model can use."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from darts import TimeSeries

from taylorformer_forecast.calendar.axis import TimeAxis
from taylorformer_forecast.calendar.steps import on_steps
from taylorformer_forecast.darts._effects import Additions
from taylorformer_forecast.defaults import CONTEXT_FLOOR, MIN_SERIES_POINTS
from taylorformer_forecast.engine.covariates import warn_of_values
from taylorformer_forecast.engine.parameters import LARGEST, POSITIVE, check_rule, is_whole
from taylorformer_forecast.engine.statistics.requests import MOST_PAST

ROUNDING = 1e-12  # standard deviation of a constant, in its value


def check_numbers(n: Any, num_samples: Any) -> None:
    """Raise a ValueError if a forecast has no steps, or no samples."""
    if not is_whole(n, 1):
        raise ValueError(f"n={n!r}, but it must be a whole number of steps, at least 1")
    check_rule("num_samples", num_samples, POSITIVE)


def check_series(
    series: Sequence[TimeSeries],
    covariates: Mapping[str, Sequence[TimeSeries] | None],
    part: str = "",
) -> None:
    """Raise a ValueError if series or covariates have values or indexes that no model can use.

    Parameters
    ----------
    series : sequence of TimeSeries
        Target series.
    covariates : mapping
        Covariates of these by the name of the parameter, None where there are none.
    part : {"", "val_"}
        What names of parameters begin with.
    """
    _check_values(series, "the target series")
    for one in series:
        static = one.static_covariates
        if static is not None:
            numbers = static.select_dtypes("number")
            if np.isinf(numbers.to_numpy(dtype=float)).any():
                raise ValueError(f"the static covariate {_first_infinite(numbers)!r} has infinite values")
    check_kinds(series, covariates, part)
    for name, given in covariates.items():
        if given is not None:
            _check_values(given, name)


def check_kinds(
    series: Sequence[TimeSeries],
    covariates: Mapping[str, Sequence[TimeSeries] | None],
    part: str = "",
    static: pd.DataFrame | None = None,
) -> None:
    """Raise a ValueError if series or covariates are samples, or of other kinds than expected.

    Their indexes have to be of one kind, and series need the ``static`` covariates of the fit, if any.
    """
    check_static(series, static)
    check_samples({f"{part}series": series, **covariates})
    for name, given in covariates.items():
        for target, one in zip(series, given or (), strict=False):
            if one.has_datetime_index != target.has_datetime_index:
                kinds = ["whole numbers", "dates"]
                has, had = kinds[one.has_datetime_index], kinds[target.has_datetime_index]
                raise ValueError(
                    f"the index of {name} holds {has}, but that of the target series holds {had}"
                )


def check_samples(given_series: Mapping[str, Sequence[TimeSeries] | None]) -> None:
    """Raise a ValueError if series or covariates are samples of a distribution."""
    for name, given in given_series.items():
        for one in given or ():
            if not one.is_deterministic:
                raise ValueError(
                    f"{name} has {one.n_samples} samples, but the models take one value of each time: give "
                    f"their median, {name}.median(axis=2)"
                )


def check_number(covariates: Sequence[TimeSeries] | None, n_fitted: int) -> None:
    """Raise a ValueError if a fit had another number of components of future covariates, or none."""
    for one in covariates or ():
        n_given = sum(not name.startswith("darts_enc_") for name in one.components)  # of an encoder
        if n_given != n_fitted:
            raise ValueError(
                f"future_covariates has {n_given} components, but the model was fitted with "
                + (f"{n_fitted}" if n_fitted else "none: give none")
            )


def check_order(covariates: Sequence[TimeSeries] | None, names: Sequence[str]) -> None:
    """Raise a ValueError if future covariates have the components of the fit in another order."""
    for one in covariates or ():
        given = one.components[: len(names)].tolist()
        if given != list(names) and sorted(given) == sorted(names):
            raise ValueError(
                f"future_covariates has components {given}, but the model was fitted with {list(names)}: "
                f"their order must be the same"
            )


def check_static(series: Sequence[TimeSeries], like: pd.DataFrame | None) -> None:
    """Raise a ValueError if series have other static covariates than these, which a network sees if any."""
    names = [] if like is None else like.columns.tolist()
    for number, one in enumerate(series if names else ()):
        static = one.static_covariates
        own = [] if static is None else static.columns.tolist()
        if own != names:
            which = f" of series number {number}" if len(series) > 1 else ""
            raise ValueError(
                f"the static covariates{which} are {own or 'missing'}, but others have {names}: all series "
                f"need the same, in the same order"
            )


def check_alike(series: Sequence[TimeSeries], static: bool) -> None:
    """Raise a ValueError if some series have dates and others integers, or, if asked, unlike static ones."""
    given = (one.static_covariates for one in series if static and one.static_covariates is not None)
    check_static(series, next(given, None))
    for number, one in enumerate(series):
        if one.has_datetime_index != series[0].has_datetime_index:
            raise ValueError(
                f"number {number} of the target series has {_kind(one)}, but number 0 has {_kind(series[0])}"
            )


def check_observed(
    series: Sequence[TimeSeries], covariates: Mapping[str, Sequence[TimeSeries] | None]
) -> None:
    """Raise a ValueError if series to train on have no value at all; warn if some covariate has none."""
    if not any(np.isfinite(one.all_values(copy=False).astype(float)).any() for one in series):
        raise ValueError("the target series has no observed value")
    for name, given in covariates.items():
        if given:
            values = [one.values(copy=False) for one in given]
            warn_of_values(np.concatenate(values).astype(float), given[0].components, name)


def check_dated(series: Sequence[TimeSeries], name: str) -> None:
    """Raise a ValueError if series have integers where phases of the calendar need dates."""
    if not all(one.has_datetime_index for one in series):
        raise ValueError(f"{name} has an integer index, but the model was fitted with dates")


def warn_of_empty_inputs(series: Sequence[TimeSeries], length: int) -> None:
    """Warn if components have nothing from which a network could forecast them."""
    empty = [
        f"component {component!r} of series" + f" number {number}" * (len(series) > 1)
        for number, one in enumerate(series)
        for component, seen in zip(
            one.components, ~np.isnan(one.all_values(copy=False)[-length:]).all((0, 2)), strict=True
        )
        if not seen
    ]
    if empty:
        warnings.warn(
            f"{empty[0]} has no observed value in its last {length} steps (input_chunk_length): its "
            f"forecasts are NaN" + f" (first of {len(empty)})" * (len(empty) > 1),
            stacklevel=2,
        )


def warn_of_other_steps(series: Sequence[TimeSeries], axis: TimeAxis) -> None:
    """Warn if series have other steps of time than those of the fit, whose seasons are theirs then."""
    for number, one in enumerate(series):
        if not one.has_datetime_index or axis.freq is None or one.freq == axis.freq:
            continue
        own = TimeAxis.of([one.time_index], one.freq)
        if len(one) > 1 and (own.kind, own.step) != (axis.kind, axis.step):
            warnings.warn(
                f"series{f' number {number}' * (len(series) > 1)} has frequency {one.freq_str}, but the "
                f"model was fitted to {axis.freq.freqstr}: its forecasts have the seasons of that. Fit a "
                "model of its own",
                stacklevel=2,
            )
            return


def warn_of_late_covariates(
    series: Sequence[TimeSeries], covariates: Sequence[TimeSeries], additions: Additions
) -> None:
    """Warn if values are not used because the future covariates that add something to them begin later."""
    for number, (one, own) in enumerate(zip(series, covariates, strict=False)):
        begin, near = own.start_time(), one[-MOST_PAST:]
        if own.has_datetime_index != one.has_datetime_index or begin <= near.start_time():
            continue  # another kind of index is refused later
        known = ~np.isnan(near.all_values(copy=False)).all((1, 2))
        n_unused = int((additions.hides(near, own) & known & (near.time_index < begin)).sum())
        if n_unused:
            of = f" of series number {number}" * (len(series) > 1)
            warnings.warn(
                f"future_covariates{of} begin at {begin}: the {n_unused} values of the series before it are "
                f"not used. Give them from {one.start_time()} on",
                stacklevel=2,
            )
            return


def warn_of_small_scales(series: Sequence[TimeSeries], floor: Sequence[float]) -> None:
    """Warn if a component varies less than any context that a network was trained on is thought to."""
    for number, one in enumerate(series):
        values = np.asarray(one.values(copy=False), dtype=float)
        for name, column, least in zip(one.components, values.T, floor, strict=False):
            known = column[np.isfinite(column)]
            if len(known) >= MIN_SERIES_POINTS and ROUNDING * abs(known.mean()) < known.std() < least:
                where = f"component {name!r} of series" + f" number {number}" * (len(series) > 1)
                warnings.warn(
                    f"{where} has a standard deviation of {known.std():.3g}, less than {CONTEXT_FLOOR:.0%} "
                    f"of that of what the model was fitted to ({least / CONTEXT_FLOOR:.3g}): its intervals "
                    "are too wide. Give it in the unit of the others",
                    stacklevel=2,
                )
                return


def _kind(series: TimeSeries) -> str:
    return "dates" if series.has_datetime_index else "an integer index"


def _check_values(series: Sequence[TimeSeries], name: str) -> None:
    """Values are finite numbers whose squares are numbers, of the same components everywhere."""
    for number, one in enumerate(series):
        if one.n_components != series[0].n_components:
            raise ValueError(
                f"number {number} of {name} has {one.n_components} components, but number 0 has "
                f"{series[0].n_components}: all must have the same"
            )
        if not one.time_index.is_unique:
            double = one.time_index[one.time_index.duplicated()]
            raise ValueError(f"{name} has duplicate time stamps: {double[0]} (first of {len(double)})")
        largest = np.nan_to_num(np.abs(one.all_values(copy=False)), posinf=np.inf).max((0, 2), initial=0.0)
        for component, value in zip(one.components, largest.astype(float), strict=True):
            if np.isinf(value):
                raise ValueError(f"{name}: component {component!r} has infinite values")
            if value > LARGEST:
                raise ValueError(
                    f"{name}: component {component!r} has values beyond {LARGEST:g}: change the unit"
                )


def _first_infinite(numbers: Any) -> str:
    return numbers.columns[np.isinf(numbers.to_numpy(dtype=float)).any(0)][0]


def gaps_too_wide(series: Sequence[TimeSeries]) -> str | None:
    """Why series cannot have statistical forecasts: in half of them, or more, most values are missing."""
    wide, count = [], 0
    for number, one in enumerate(series):
        for name, values in zip(one.components, one.values(copy=False).T, strict=True):
            seen = np.flatnonzero(~np.isnan(values))
            count += len(seen) > 0
            if len(seen) and on_steps(seen) is None:
                wide.append(f"component {name!r}" + f" of series number {number}" * (len(series) > 1))
    if not wide or 2 * len(wide) < count:
        return None
    return f"most values of {wide[0]} are missing, too many for statistical forecasts"
