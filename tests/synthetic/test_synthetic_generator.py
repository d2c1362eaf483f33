"""Batches: what all of them have, determinism, switches, shares, throughput, documentation."""

import re
import time
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import taylorformer_forecast.synthetic as package
from taylorformer_forecast.synthetic import ARCHETYPES, PROCESSES, SyntheticGenerator
from taylorformer_forecast.synthetic.archetypes import archetypes_at
from taylorformer_forecast.synthetic.processes import KINDS
from taylorformer_forecast.synthetic.weights import (
    CALENDAR_SHARES,
    EVENT_SHARES,
    IRREGULAR,
    OBSERVATION_SHARES,
)

FOLDER = Path(__file__).parent


@pytest.fixture(scope="module")
def many():
    generator = SyntheticGenerator(0, 400)
    return [generator.batch(number, length=n) for number, n in enumerate([20, 48, 90, 200, 400] * 2)]


def test_a_batch_is_a_function_of_seed_and_number():
    one, same = SyntheticGenerator(3, 30), SyntheticGenerator(3, 30)
    same.batch(1)
    same.batch(7)
    for number in (0, 5):
        a, b = one.batch(number), same.batch(number)
        for field in fields(a):
            first, second = getattr(a, field.name), getattr(b, field.name)
            if field.name == "processes":
                assert first == second
            else:
                np.testing.assert_array_equal(first, second)
    fixed = [one.batch(0, 50), one.batch(1, 50), SyntheticGenerator(4, 30).batch(0, 50)]
    for i in range(3):
        for j in range(i):
            assert not np.array_equal(fixed[i].values, fixed[j].values, equal_nan=True)


@pytest.mark.parametrize("length", [5, 6, 8, 13, 30, 111, 365, 2000])
def test_values_are_finite_and_vary_at_increasing_times(length):
    with np.errstate(divide="raise", over="raise", invalid="raise"):
        batch = SyntheticGenerator(1, 200).batch(2, length)
    assert batch.values.shape == batch.times.shape == (200, length)
    assert 0 < batch.horizon < length
    assert (np.diff(batch.times) > 0).all()
    for y in batch.values:
        seen = y[~np.isnan(y)]
        assert len(seen) >= 2
        assert np.isfinite(seen).all()
        assert np.ptp(seen) > 0


@pytest.mark.parametrize("name", ARCHETYPES)
def test_every_archetype_may_be_long(name):
    batch = SyntheticGenerator(0, 60, {name: 1.0}, {"irregular_times": 10.0}).batch(0, 2000)
    assert np.isfinite(batch.values[~np.isnan(batch.values)]).all()


def test_seasons_come_in_order_with_phases_and_at_least_two_cycles(many):
    for batch in many:
        regular = (np.diff(batch.times) == 1).all(1)
        for row in np.flatnonzero(regular):
            periods = batch.periods[row]
            positive = periods[periods > 0]
            assert list(positive) == sorted(positive)
            assert (periods[: len(positive)] > 0).all()
            assert (2 * positive <= batch.values.shape[1]).all()
        assert ((batch.phases >= 0) & (batch.phases < 1)).all()
        assert (batch.phases[batch.periods == 0] == 0).all()
        cycles = batch.cycles()
        np.testing.assert_array_equal(np.isnan(cycles[:, 0]), batch.periods == 0)
        np.testing.assert_allclose(
            cycles[:, 0][batch.periods > 0],
            0 * batch.phases[batch.periods > 0]
            + (batch.times[:, :1] / np.where(batch.periods > 0, batch.periods, 1) + batch.phases)[
                batch.periods > 0
            ]
            % 1,
        )


def test_counts_are_whole_and_nonnegative_series_are_so(many):
    for batch in many:
        counts = np.nan_to_num(batch.values[batch.counts])
        np.testing.assert_array_equal(counts, np.round(counts))
        np.testing.assert_array_equal(np.nanmin(batch.values, axis=1) >= 0, batch.nonnegative)
        assert batch.nonnegative[batch.counts].all()


def test_lengths_and_horizons_are_usual_for_some_archetype():
    batches = [SyntheticGenerator(0, 2).batch(number) for number in range(300)]
    lengths = np.array([b.values.shape[1] for b in batches])
    horizons = np.array([b.horizon for b in batches])
    assert lengths.min() < 20
    assert lengths.max() > 1200
    assert horizons.min() == 1
    assert horizons.max() > 100
    assert (3 * horizons <= np.maximum(lengths, 3)).all()


def test_shares_of_archetypes_follow_their_weights_over_all_lengths():
    generator = SyntheticGenerator(0, 20, processes=["white_noise"])
    found = np.concatenate([generator.batch(number).archetype for number in range(400)])
    total = sum(one.weight for one in ARCHETYPES.values())
    for name, one in ARCHETYPES.items():
        assert np.mean(found == name) == pytest.approx(one.weight / total, abs=0.03), name


def test_every_process_is_used_at_some_frequency(many):
    used = {name for batch in many for names in batch.processes for name in names}
    assert used == set(PROCESSES)


def test_rare_processes_are_as_frequent_as_their_probabilities():
    generator = SyntheticGenerator(5, 3000, archetypes={"monthly": 1.0})
    names = generator.batch(0, 60).processes
    shares = {**EVENT_SHARES, **OBSERVATION_SHARES, "irregular_times": IRREGULAR}
    for name, share in shares.items():
        assert np.mean([name in one for one in names]) == pytest.approx(share, abs=0.02), name
    for name, share in CALENDAR_SHARES["monthly"].items():  # mixtures have two chances
        found = np.mean([name in one for one in names if "mixture" not in one])
        assert found == pytest.approx(share, abs=0.025), name


def test_mixture_series_have_parts_of_two_and_the_share_that_is_given():
    generator = SyntheticGenerator(6, 3000, archetypes={"yearly": 1.0})
    names = generator.batch(0, 40).processes
    mixed = np.array(["mixture" in one for one in names])
    assert mixed.mean() == pytest.approx(0.06, abs=0.015)
    levels = np.array([len(set(one) & set(KINDS["level"] + KINDS["Gaussian process"])) for one in names])
    assert levels[~mixed].max() == 1
    assert levels[mixed].max() == 2


@pytest.mark.parametrize("kind", KINDS)
def test_processes_that_are_switched_off_are_not_used(kind):
    off = dict.fromkeys(KINDS[kind], 0.0)
    batch = SyntheticGenerator(0, 300, processes=off).batch(0, 100)
    assert not set(off) & {name for names in batch.processes for name in names}


@pytest.mark.parametrize("name", PROCESSES)
def test_every_process_alone_gives_series(name):
    batch = SyntheticGenerator(0, 40, processes=[name]).batch(0, 60)
    used = {one for names in batch.processes for one in names}
    assert used <= {name}
    assert np.isfinite(batch.values[~np.isnan(batch.values)]).all()


def test_factors_of_processes_change_their_shares():
    generator = SyntheticGenerator(0, 2000, {"yearly": 1.0}, {"damped": 5.0, "outliers": 3.0})
    names = generator.batch(0, 40).processes
    assert np.mean(["outliers" in one for one in names]) == pytest.approx(0.24, abs=0.03)
    damped = np.mean(["damped" in one for one in names])
    assert damped == pytest.approx(0.8 * 90 / 172, abs=0.04)


def test_wrong_names_and_lengths_are_refused():
    with pytest.raises(ValueError, match="unknown processes"):
        SyntheticGenerator(processes=["lineal"])
    with pytest.raises(ValueError, match="unknown archetypes"):
        SyntheticGenerator(archetypes={"secular": 1.0})
    with pytest.raises(ValueError, match="length=4, horizon=1"):
        SyntheticGenerator().batch(0, 4)
    with pytest.raises(ValueError, match="length=20, horizon=20"):
        SyntheticGenerator().batch(0, 20, 20)


def test_archetypes_of_a_length_are_those_whose_range_includes_it():
    weights = {name: one.weight for name, one in ARCHETYPES.items()}
    assert "hourly" not in archetypes_at(40, weights)
    assert "yearly" not in archetypes_at(400, weights)
    assert archetypes_at(40, {"hourly": 1.0}) == {"hourly": 1.0}


def test_short_economic_series_are_trending_and_demand_is_mostly_zero():
    def draw(name, n):
        return SyntheticGenerator(0, 500, {name: 1.0}, {"missing_points": 0, "missing_blocks": 0}).batch(0, n)

    y = draw("yearly", 30).values
    z = (y - y.mean(1, keepdims=True)) / y.std(1, keepdims=True)
    assert np.median((z[:, 1:] * z[:, :-1]).mean(1)) > 0.75
    assert np.median(y.std(1) / np.abs(y.mean(1))) == pytest.approx(0.27, abs=0.12)
    zeros = (draw("demand", 51).values == 0).mean(1)
    assert np.median(zeros) == pytest.approx(0.75, abs=0.12)
    batch = draw("monthly", 120)
    y = batch.values - batch.values.mean(1, keepdims=True)
    season = (y[:, 12:] * y[:, :-12]).mean(1) / (y**2).mean(1)
    assert np.quantile(season, 0.9) > 0.65
    assert np.quantile(season, 0.1) < 0.25


def test_throughput_is_not_lost():
    generator = SyntheticGenerator(0, 512)
    generator.batch(0, 200)
    seconds = []
    for number in range(3):
        start = time.process_time()
        generator.batch(number, 200)
        seconds.append(time.process_time() - start)
    assert 512 / min(seconds) > 500


def test_every_process_has_a_test_of_its_moments():
    text = "\n".join(path.read_text() for path in FOLDER.glob("test_synthetic_*.py"))
    tests = re.findall(r"def test_(\w+)", text)
    missing = [name for name in PROCESSES if not any(test.startswith(f"{name}_") for test in tests)]
    assert missing == []


def test_nothing_else_in_the_package_imports_the_generator():
    root = Path(package.__path__[0])
    for path in root.parent.rglob("*.py"):
        if root not in path.parents:
            assert "taylorformer_forecast.synthetic" not in path.read_text(), path
