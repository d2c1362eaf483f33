"""Skpro distributions against their contract, closed forms, scipy, Monte Carlo and sktime's metrics."""

import copy
import pickle
import time
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from skpro.distributions import Empirical, Normal
from skpro.utils.estimator_checks import check_estimator
from sktime.performance_metrics.forecasting.probabilistic import CRPS, LogLoss, PinballLoss

from taylorformer_forecast.core.families import find_component
from taylorformer_forecast.core.families.base import POINT_MASS
from taylorformer_forecast.engine.mixtures import ROUGH_STEP, Mixture
from taylorformer_forecast.sktime import TaylorformerForecaster
from taylorformer_forecast.sktime.distributions import PathMixture
from taylorformer_forecast.sktime.sample_paths import SamplePaths

H, C, K, S = 6, 2, 5, 50
PANEL = pd.MultiIndex.from_product(
    [["a", "b"], pd.period_range("2020-01", periods=3, freq="M")], names=["instance", "time"]
)
ALPHAS = [0.01, 0.1, 0.5, 0.75, 0.99]


def components(kind, shape=(H, C, K), spread=3.0, seed=0):
    rng = np.random.default_rng(seed)
    params = {"mu": spread * rng.normal(size=shape), "sigma": np.exp(0.5 * rng.normal(size=shape))}
    if "weighted" in kind:
        params["weights"] = rng.dirichlet(np.ones(shape[-1]), shape[:-1])
    if "t" in kind.split():
        params["df"] = rng.uniform(2.5, 20, shape)
    if "uniform" in kind:
        params["family"] = "uniform"
    return params


KINDS = ["normal", "weighted normal", "t", "weighted t", "uniform", "weighted uniform"]


@pytest.fixture
def walks():
    return np.random.default_rng(0).normal(size=(S, H, C)).cumsum(axis=1)


def make(name, **labels):
    if name == "paths":
        paths = np.random.default_rng(0).normal(size=(S, H, C)).cumsum(axis=1)
        return SamplePaths(paths, random_state=1, **labels)
    return PathMixture(**components(name), random_state=1, **labels)


ALL = [*KINDS, "paths"]


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("n_samples", [-1, 1.5, "a"])
def test_numbers_of_draws_are_whole_numbers(name, n_samples):
    message = f"^n_samples={n_samples!r}, but it must be None or a whole number, at least 0$"
    with pytest.raises(ValueError, match=message):
        make(name).sample(n_samples)


# --- contract -------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("cls", [PathMixture, SamplePaths])
def test_every_skpro_conformance_check_passes(cls):
    results = check_estimator(cls, raise_exceptions=False, verbose=False)
    assert len(results) > 100
    assert {name: res for name, res in results.items() if res != "PASSED"} == {}


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(
    "copier", [copy.deepcopy, lambda d: pickle.loads(pickle.dumps(d)), lambda d: d.clone()]
)
def test_copies_give_the_same_numbers(name, copier):
    d = make(name, index=PANEL, columns=["y", "z"])
    e = copier(d)
    pd.testing.assert_frame_equal(e.quantile(ALPHAS), d.quantile(ALPHAS))
    pd.testing.assert_frame_equal(e.sample(3), d.sample(3))
    pd.testing.assert_frame_equal(e.energy(), d.energy())


@pytest.mark.parametrize("name", ALL)
def test_no_method_warns_or_changes_the_object_or_the_global_generator(name):
    d = make(name)
    before, state = pickle.dumps(d), np.random.get_state()[1].copy()  # noqa: NPY002
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = d.mean()
        for method in ("var", "sample", "energy"):
            getattr(d, method)()
        for method in ("cdf", "pdf", "log_pdf", "pmf", "log_pmf", "energy"):
            getattr(d, method)(x)
        d.quantile(ALPHAS)
    assert pickle.dumps(d) == before
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: PathMixture(np.zeros((3, 2)), 1.0), r"mu must have shape .* got \(3, 2\)"),
        (lambda: PathMixture(np.zeros((0, 2, 3)), 1.0), "mu must have shape"),
        (lambda: PathMixture(np.zeros((3, 2, 4)), np.ones((3, 2, 5))), "sigma of shape .* does not fit mu"),
        (lambda: PathMixture(np.zeros((3, 2, 4)), 0.0), "sigma must be positive"),
        (lambda: PathMixture(np.zeros((3, 2, 4)), 1.0, df=-1.0), "df must be positive"),
        (lambda: PathMixture(np.zeros((3, 2, 4)), 1.0, family="t"), "family='t' is not"),
        (lambda: PathMixture(np.zeros((3, 2, 4)), 1.0, df=3.0, family="uniform"), "without df"),
        (lambda: PathMixture(np.zeros((3, 2, 2)), 1.0, weights=[1.0, -1.0]), "weights must not be negative"),
        (lambda: PathMixture(np.zeros((3, 2, 2)), 1.0, weights=[0.0, 0.0]), "nor all zero"),
        (
            lambda: PathMixture(np.zeros((3, 2, 4)), 1.0, index=[0, 1]),
            "index has 2 labels but the arrays have 3",
        ),
        (lambda: PathMixture(np.zeros(4), 1.0, columns=["y"]), "need arrays with a row"),
        (lambda: SamplePaths(np.zeros((3, 2))), r"paths must have shape .* got \(3, 2\)"),
        (lambda: SamplePaths(np.zeros((3, 2, 2)), columns=["y"]), "columns has 1 labels"),
        (lambda: SamplePaths(np.zeros((3, 2, 2))).quantile(1.5), "alpha must lie between 0 and 1"),
    ],
)
def test_wrong_arguments_are_named_in_the_error(build, message):
    with pytest.raises(ValueError, match=message):
        build()


# --- marginals of the mixture -----------------------------------------------------------------------------


def test_single_normal_component_equals_skpro_normal():
    p = components("normal", (H, C, 1))
    d, ref = PathMixture(**p), Normal(p["mu"][..., 0], p["sigma"][..., 0])
    x = ref.mean() + 1.3
    for method in ("mean", "var", "energy"):
        np.testing.assert_allclose(getattr(d, method)(), getattr(ref, method)(), rtol=1e-12)
    for method in ("pdf", "log_pdf", "cdf", "energy"):
        np.testing.assert_allclose(getattr(d, method)(x), getattr(ref, method)(x), rtol=1e-12)
    pd.testing.assert_frame_equal(d.quantile(ALPHAS), ref.quantile(ALPHAS), rtol=1e-12)


def test_single_student_component_equals_scipy():
    p = components("t", (H, C, 1))
    mu, sigma, df = (p[k][..., 0] for k in ("mu", "sigma", "df"))
    d, ref, x = PathMixture(**p), stats.t(df, mu, sigma), mu - 2 * sigma
    np.testing.assert_allclose(d.mean(), ref.mean(), rtol=1e-12)
    np.testing.assert_allclose(d.var(), ref.var(), rtol=1e-12)
    np.testing.assert_allclose(d.pdf(x), ref.pdf(x), rtol=1e-11)
    np.testing.assert_allclose(d.log_pdf(x), ref.logpdf(x), rtol=1e-11)
    np.testing.assert_allclose(d.cdf(x), ref.cdf(x), rtol=1e-11)
    np.testing.assert_allclose(d.ppf(0.9), ref.ppf(0.9), rtol=1e-6)  # old scipy: seven digits
    for alpha in (0.003, 0.9):
        np.testing.assert_allclose(ref.cdf(d.ppf(alpha)), alpha, rtol=1e-10)


def test_student_variance_is_infinite_up_to_two_degrees_of_freedom():
    d = PathMixture(np.zeros((2, 1, 1)), 1.0, df=[[[2.0]], [[4.0]]])
    np.testing.assert_allclose(d.var()[0], [np.inf, 2.0])


@pytest.mark.parametrize("kind", KINDS)
def test_mixture_density_and_cdf_are_weighted_sums_of_components(kind):
    p = components(kind)
    base = stats.t(p["df"], p["mu"], p["sigma"]) if "df" in p else stats.norm(p["mu"], p["sigma"])
    if "uniform" in kind:
        base = stats.uniform(p["mu"] - p["sigma"], 2 * p["sigma"])
    w, d, x = p.get("weights", np.full((H, C, K), 1 / K)), PathMixture(**p), np.full((H, C), 0.7)
    np.testing.assert_allclose(d.pdf(x), (w * base.pdf(0.7)).sum(-1), rtol=1e-11)
    np.testing.assert_allclose(d.cdf(x), (w * base.cdf(0.7)).sum(-1), rtol=1e-11)
    mean = (w * base.mean()).sum(-1)
    np.testing.assert_allclose(d.mean(), mean, rtol=1e-11)
    np.testing.assert_allclose(d.var(), (w * (base.var() + base.mean() ** 2)).sum(-1) - mean**2, rtol=1e-10)


def test_a_single_value_has_its_probability_at_itself_and_is_drawn_exactly():
    """Half of it was missing: the probability of no demand was too small by half, draws were -1e-12."""
    values, weights = np.array([[0.0, 3.0, 1e4]]), np.array([[0.4, 0.5, 0.1]])
    point = POINT_MASS * 1e4
    demand = PathMixture(values[:, None], np.full((1, 1, 3), point), weights[:, None], family="uniform")
    found = [demand.cdf([[x]]).to_numpy().item() for x in (-1e-6, 0.0, 1.0, 3.0, 1e4)]
    np.testing.assert_allclose(found, [0, 0.4, 0.4, 0.9, 1], atol=1e-12)
    assert set(np.unique(demand.sample(200).to_numpy())) == {0.0, 3.0, 1e4}
    pieces = PathMixture(values[:, None], 1.0, weights[:, None], family="uniform")
    assert pieces.cdf([[0.0]]).to_numpy().item() == pytest.approx(0.2)


def test_log_density_survives_where_the_density_underflows():
    d = PathMixture([0.0, 1.0], 1.0)
    assert d.pdf(60.0) == 0
    assert d.log_pdf(60.0) == pytest.approx(stats.norm.logpdf(59) - np.log(2), rel=1e-12)


def test_weights_are_normalised_and_zero_weights_drop_their_component():
    d = PathMixture(np.array([[[0.0, 100.0]]]), 1.0, weights=[3.0, 0.0])
    one = PathMixture(np.zeros((1, 1, 1)), 1.0)
    np.testing.assert_allclose(d.quantile_array(ALPHAS), one.quantile_array(ALPHAS), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(d.energy(), one.energy(), rtol=1e-12)
    assert d.sample(1000).to_numpy().max() < 10


def test_smaller_parameters_broadcast_to_the_locations():
    mu = components("normal")["mu"]
    w, df = np.arange(1.0, K + 1), 5.0
    full = PathMixture(mu, *(np.broadcast_to(v, mu.shape).copy() for v in (2.0, w, df)))
    pd.testing.assert_frame_equal(PathMixture(mu, 2, w, df).energy(), full.energy())
    pd.testing.assert_frame_equal(
        PathMixture(mu, 2, w, df).iloc[1:3].quantile(0.1), full.iloc[1:3].quantile(0.1)
    )


# --- quantiles --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spread", [0.0, 3.0, 300.0])
@pytest.mark.parametrize("kind", KINDS)
def test_mixture_quantiles_rise_and_invert_the_cdf(kind, spread):
    d = PathMixture(**components(kind, (20, C, 30), spread))
    alphas = np.linspace(0.001, 0.999, 41)
    if "uniform" not in kind:  # it has an end instead of a tail
        alphas = np.r_[1e-12, 1e-6, alphas]
    q = d.quantile_array(alphas)
    assert (np.diff(q, axis=0) >= 0).all()
    np.testing.assert_allclose([d.cdf(x) for x in q], alphas[:, None, None] + 0 * q, rtol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_mapped_mixtures_have_the_images_of_the_quantiles_and_the_mean_of_the_images(kind):
    p = components(kind, (H, C, 30), spread=0.5)
    d = PathMixture(**p)
    w = None if "weights" not in p else p["weights"] / p["weights"].sum(-1, keepdims=True)

    def bend(x):
        return np.exp(np.minimum(x, 3) / 5) + np.maximum(x - 3, 0) * np.exp(0.6) / 5

    image = PathMixture._of(Mixture(d._kind, p["mu"], p["sigma"], w, d._shapes).mapped(bend))
    alphas = np.array([0.02, 0.1, 0.5, 0.9, 0.98])
    np.testing.assert_allclose(image.quantile_array(alphas), bend(d.quantile_array(alphas)), rtol=0.005)
    levels = (np.arange(1000) + 0.5) / 1000
    np.testing.assert_allclose(image.mean(), bend(d.quantile_array(levels)).mean(0), rtol=0.005)


def test_upper_tail_quantiles_are_as_good_as_lower_ones():
    p = components("weighted t")
    upper = PathMixture(**p).quantile_array([1 - 2.0**-40])
    lower = PathMixture(**p | {"mu": -p["mu"]}).quantile_array([2.0**-40])
    np.testing.assert_array_equal(upper, -lower)


def test_quantiles_of_far_modes_match_those_of_the_modes():
    d = PathMixture(np.array([[[-1e4, 0.0, 1e6]]]), np.array([1e-3, 1.0, 10.0]))
    q = d.quantile_array([0.1, 0.5, 0.9]).ravel()
    expected = [-1e4 + 1e-3 * stats.norm.ppf(0.3), 0.0, 1e6 + 10 * stats.norm.ppf(0.7)]
    np.testing.assert_allclose(q, expected, rtol=1e-12, atol=1e-10)
    assert PathMixture([-50.0, 50.0], 1.0).ppf(0.5) == 0  # in the gap only symmetry decides


@pytest.mark.parametrize("name", ALL)
def test_quantile_ppf_and_quantile_array_agree_exactly(name):
    d = make(name, index=PANEL, columns=["y", "z"])
    array, frame = d.quantile_array(ALPHAS), d.quantile(ALPHAS)
    assert array.shape == (len(ALPHAS), H, C)
    for i, alpha in enumerate(ALPHAS):
        for j, column in enumerate(["y", "z"]):
            np.testing.assert_array_equal(frame[column, alpha], array[i, :, j])
        np.testing.assert_array_equal(d.ppf(alpha), array[i])
        np.testing.assert_array_equal(d.quantile(alpha), array[i])
        np.testing.assert_allclose(
            d.iloc[[4], [1]].quantile_array(alpha)[0], array[i, [4], [1]][:, None], rtol=1e-13
        )


@pytest.mark.parametrize("name", [kind for kind in KINDS if "uniform" not in kind])
def test_quantiles_at_zero_and_one_are_infinite_and_outside_missing(name):
    d = make(name)
    np.testing.assert_array_equal(d.quantile_array([0, 1])[:, 0, 0], [-np.inf, np.inf])
    assert d.ppf(1.5).isna().all(axis=None)


def test_uniform_mixtures_end_where_their_outermost_component_with_weight_ends():
    d = PathMixture([0.0, 10.0, 99.0], [1.0, 2.0, 3.0], [0.5, 0.5, 0.0], family="uniform")
    np.testing.assert_allclose(d.quantile_array([0, 0.25, 0.75, 1]), [-1.0, 0.0, 10.0, 12.0], atol=1e-9)
    assert d.ppf(0.5) == pytest.approx(4.5, abs=3.5)  # anywhere in the gap
    assert (d.pdf(0.0), d.pdf(5.0)) == (pytest.approx(0.25), 0.0)
    assert d.log_pdf(5.0) == -np.inf
    assert np.isnan(d.ppf(1.5))


def test_the_density_of_pieces_side_by_side_has_no_hole_where_they_meet():
    ends = np.sort(np.random.default_rng(0).uniform(90, 110, (200, 2)).cumsum(1) ** 1.1, axis=1)
    ends = np.concatenate([ends[:, :1] - 3, ends], 1)
    m, s = (ends[:, :-1] + ends[:, 1:]) / 2, (ends[:, 1:] - ends[:, :-1]) / 2
    d = PathMixture(m[:, None], s[:, None], family="uniform")
    expected = (1 / (2 * s)).mean(1) / 2
    np.testing.assert_allclose(d.pdf(ends[:, 1:2]).to_numpy()[:, 0], expected)


@pytest.mark.parametrize("weights", [None, [0.1, 0.2, 0.3, 0.4]])
@pytest.mark.parametrize("unit", [1.0, 1e-9, 1e12])
def test_quantiles_of_single_values_are_those_values(unit, weights):
    m = unit * np.array([0.0, 1.0, 3.0, 7.0])
    d = PathMixture(m, POINT_MASS * m[-1], weights, family="uniform")
    alphas = np.linspace(0.003, 0.997, 72)
    expected = m[np.searchsorted(np.cumsum(weights or [0.25] * 4), alphas)]
    np.testing.assert_array_equal(d.quantile_array([0, *alphas, 1]), [m[0], *expected, m[-1]])


def test_a_single_value_within_a_wide_piece_is_met_exactly():
    d = PathMixture([0.0, 0.3], [1.0, POINT_MASS], [0.5, 0.5], family="uniform")
    found = d.quantile_array([0.2, 0.325, 0.5, 0.825, 0.9])
    np.testing.assert_allclose(found, [-0.2, 0.3, 0.3, 0.3, 0.6], rtol=0, atol=1e-11)
    assert found[2] == 0.3


@pytest.mark.parametrize("weighted", [False, True])
def test_quantiles_of_overlapping_uniform_components_invert_the_cdf_to_rounding(weighted):
    rng = np.random.default_rng(0)
    sigma = np.exp(rng.uniform(-15, 1, size=(H, C, 60)))  # from needles to wide pieces
    weights = rng.dirichlet(np.ones(60), (H, C)) if weighted else None
    d = PathMixture(rng.normal(size=(H, C, 60)), sigma, weights, family="uniform")
    alphas = np.linspace(0.001, 0.999, 57)
    for alpha, found in zip(alphas, d.quantile_array(alphas), strict=True):
        np.testing.assert_allclose(d.cdf(found), alpha, rtol=1e-7)


@pytest.mark.parametrize("gap", [0.0, 0.5, 1.4, 1.6, 2.4, 2.6, 9.0])
def test_self_energy_of_uniform_pairs_equals_their_integral(gap):
    d = PathMixture([0.0, gap], [2.0, 0.5], family="uniform")
    x = np.linspace(-2, gap + 2, 400_001)
    f = (np.clip((x + 2) / 4, 0, 1) + np.clip(x - gap + 0.5, 0, 1)) / 2
    assert d.energy() == pytest.approx(2 * (f * (1 - f)).sum() * (x[1] - x[0]), rel=1e-4)


# --- energy -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_energies_agree_with_monte_carlo(kind):
    d = PathMixture(**components(kind, (2, 2, K)), random_state=0)
    spl = d._draw(np.random.default_rng(0), 400_000)
    x = d.mean().to_numpy() + 1
    for exact, draws in ((d.energy(x), np.abs(spl - x)), (d.energy(), np.abs(spl[::2] - spl[1::2]))):
        draws = draws.sum(-1)
        error = draws.std(0) / np.sqrt(len(draws))
        assert (np.abs(exact["energy"] - draws.mean(0)) < 5 * error).all()


@pytest.mark.parametrize("spread", [0.0, 3.0, 30.0])
@pytest.mark.parametrize("kind", KINDS)
def test_self_energy_equals_the_integral_of_the_cdf(kind, spread):
    d = PathMixture(**components(kind, (3, 1, 8), spread))
    u = np.linspace(-13, 13, 4001)  # x = centre + sinh(u): trapezia converge exponentially
    centre = d.mean().to_numpy()
    f = np.stack([d.cdf(centre + np.sinh(v)) for v in u])[..., 0]
    integral = 2 * (f * (1 - f) * np.cosh(u)[:, None]).sum(0) * (u[1] - u[0])
    np.testing.assert_allclose(d.energy()["energy"], integral, rtol=1e-8 if "normal" in kind else 1e-4)


def test_self_energy_of_two_distant_modes_is_half_their_distance():
    for df in (None, 3.0):
        d = PathMixture([-1e5, 1e5], [1e-2, 1.0], df=df)
        assert d.energy() == pytest.approx(1e5, rel=1e-4)


def test_student_energies_approach_the_normal_ones():
    p = components("weighted normal")
    x = np.zeros((H, C))
    normal, student = PathMixture(**p), PathMixture(**p, df=1e6)
    np.testing.assert_allclose(student.energy(), normal.energy(), rtol=1e-4)
    np.testing.assert_allclose(student.energy(x), normal.energy(x), rtol=1e-5)


def test_density_norm_of_a_seeded_distribution_is_not_a_single_draw():
    d = PathMixture(np.zeros((2, 1, 1)), 1.0, random_state=0)
    np.testing.assert_allclose(d.pdfnorm(), 1 / np.sqrt(4 * np.pi), rtol=0.05)


# --- sample paths -----------------------------------------------------------------------------------------


def test_sample_paths_equal_skpro_empirical(walks):
    d = SamplePaths(walks, index=PANEL, columns=["y", "z"])
    ref = d.to_empirical()
    assert isinstance(ref, Empirical)
    assert not ref.time_indep
    x = d.mean() + 0.3
    for method in ("mean", "var"):
        np.testing.assert_allclose(getattr(d, method)(), getattr(ref, method)(), rtol=1e-10)
    np.testing.assert_allclose(d.cdf(x), ref.cdf(x), rtol=1e-12)
    np.testing.assert_allclose(d.energy()["energy"], np.ravel(ref.energy()), rtol=1e-10)
    np.testing.assert_allclose(d.energy(x)["energy"], np.ravel(ref.energy(x)), rtol=1e-10)
    np.testing.assert_array_equal(d.ppf(0.33), ref.ppf(0.33))


def test_path_quantiles_are_order_statistics_and_invert_the_cdf(walks):
    d = SamplePaths(walks)
    alphas = [0.005, 0.333, 0.777]
    np.testing.assert_array_equal(
        d.quantile_array(alphas), np.quantile(walks, alphas, axis=0, method="inverted_cdf")
    )
    ranks = np.arange(1, S + 1) / S  # ranks hit exactly, whatever the rounding of alpha * S
    np.testing.assert_array_equal(d.quantile_array(ranks), np.sort(walks, axis=0))
    np.testing.assert_array_equal(d.quantile_array([0, 1]), [walks.min(0), walks.max(0)])
    hundred = SamplePaths(np.arange(1.0, 101.0))
    np.testing.assert_array_equal(hundred.quantile_array(np.arange(1, 101) / 100), np.arange(1.0, 101.0))


def test_path_probabilities_are_masses_not_densities():
    d = SamplePaths([[[1.0]], [[1.0]], [[2.0]], [[5.0]]], columns=["y"])
    assert d.pmf([[1.0]]).loc[0, "y"] == 0.5
    assert d.log_pmf([[3.0]]).loc[0, "y"] == -np.inf
    assert d.pdf([[1.0]]).loc[0, "y"] == 0


def test_path_energy_equals_all_pairs(walks):
    pairs = np.abs(walks[:, None] - walks[None]).mean((0, 1)).sum(-1)
    np.testing.assert_allclose(SamplePaths(walks).energy()["energy"], pairs, rtol=1e-12)


def test_path_draws_are_whole_trajectories(walks):
    d = SamplePaths(walks, random_state=0, index=PANEL)
    draws = d.sample(400).to_numpy().reshape(400, H, C)
    known = {path.tobytes() for path in walks}
    assert all(draw.tobytes() in known for draw in draws)
    np.testing.assert_allclose(
        np.corrcoef(draws[..., 0].T), np.corrcoef(walks[..., 0].T), atol=0.15
    )  # rows of a random walk stay correlated
    one = d.sample()
    assert one.to_numpy().tobytes() in known
    assert one.index.equals(PANEL)


def test_as_many_draws_as_paths_are_the_paths_and_not_a_view(walks):
    d = SamplePaths(walks.copy())
    spl = d.sample(S)
    np.testing.assert_array_equal(spl.to_numpy().reshape(walks.shape), walks)
    spl.iloc[:, :] = 0.0
    np.testing.assert_array_equal(d.paths, walks)


# --- sampling ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_seeded_draws_repeat_and_unseeded_ones_do_not(name):
    d = make(name)
    pd.testing.assert_frame_equal(d.sample(4), d.sample(4))
    d = d.clone().set_params(random_state=None)
    assert not np.array_equal(d.sample(4), d.sample(4))


@pytest.mark.parametrize("index", [None, PANEL, pd.date_range("2020", periods=H, name="day")])
@pytest.mark.parametrize("name", ["normal", "paths"])
def test_sample_has_the_labels_of_stacked_frames(name, index):
    d = make(name, index=index)
    expected = pd.concat([d.mean()] * 3, keys=range(3))
    pd.testing.assert_index_equal(d.sample(3).index, expected.index, exact="equiv")


@pytest.mark.parametrize("kind", KINDS)
def test_mixture_draws_follow_the_cdf_of_every_cell(kind):
    d = PathMixture(**components(kind), random_state=0)
    spl = d._draw(np.random.default_rng(0), 4000)
    u = np.sort(np.stack([d.cdf(x) for x in spl]), axis=0)
    ks = np.abs(u - (np.arange(4000)[:, None, None] + 0.5) / 4000).max(0)
    assert ks.max() < 2.2 / np.sqrt(4000)


# --- subsetting -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["weighted t", "paths"])
@pytest.mark.parametrize(
    ("key", "rows", "cols"),
    [
        ((slice(None), ["z"]), range(H), [1]),
        ((slice(None), "z"), range(H), [1]),
        ((PANEL[[4, 0]], ["z", "y"]), [4, 0], [1, 0]),
        ((PANEL[[4, 0]], pd.Index(["z"])), [4, 0], [1]),
        ("b", [3, 4, 5], [0, 1]),
        (("b", ["z"]), [3, 4, 5], [1]),
        ((["b"], ["z"]), [3, 4, 5], [1]),
        ((("b", PANEL[1][1]), ["y"]), [4], [0]),
        (PANEL[1], [1], [0, 1]),
        (np.arange(H) % 2 == 0, [0, 2, 4], [0, 1]),
    ],
    ids=str,
)
def test_label_subsets_of_panels_equal_subsets_of_the_arrays(name, key, rows, cols):
    d = make(name, index=PANEL, columns=["y", "z"])
    rows, cols = list(rows), list(cols)
    sub = d.loc[key]
    assert type(sub) is type(d)
    assert sub.index.equals(PANEL[rows])
    assert list(sub.columns) == [["y", "z"][c] for c in cols]
    pd.testing.assert_frame_equal(sub.mean(), d.mean().iloc[rows, cols])
    pd.testing.assert_frame_equal(sub.cdf(0.5), d.cdf(0.5).iloc[rows, cols])
    same = d.iloc[rows, cols]
    pd.testing.assert_frame_equal(same.var(), sub.var())


@pytest.mark.parametrize("name", ["weighted t", "paths"])
@pytest.mark.parametrize(
    "key", [2, slice(1, 4), [5, 1], (slice(None), 1), (-1, [0]), (range(2), slice(None))], ids=str
)
def test_position_subsets_equal_those_of_a_frame(name, key):
    d = make(name)
    expected = d.mean().iloc[key]
    np.testing.assert_allclose(np.ravel(d.iloc[key].mean()), np.ravel(expected), rtol=1e-12)


@pytest.mark.parametrize("name", ["weighted t", "normal", "paths"])
def test_a_single_cell_is_a_scalar_distribution(name):
    d = make(name, index=PANEL, columns=["y", "z"])
    for cell in (d.iat[4, 1], d.iloc[4, 1], d.loc[PANEL[4], "z"], d.at[PANEL[4], "z"]):
        assert cell.shape == ()
        assert cell.mean() == pytest.approx(d.mean().iloc[4, 1], rel=1e-12)
        assert cell.cdf(0.3) == pytest.approx(d.cdf(0.3).iloc[4, 1], rel=1e-12)
        assert cell.ppf(0.3) == pytest.approx(d.ppf(0.3).iloc[4, 1], rel=1e-12)
        assert cell.energy() == pytest.approx(d.iloc[[4], [1]].energy().iloc[0, 0], rel=1e-12)


@pytest.mark.parametrize("name", ["normal", "paths"])
def test_unknown_labels_are_an_error_not_another_row(name):
    d = make(name, index=PANEL, columns=["y", "z"])
    with pytest.raises(KeyError):
        d.loc[:, ["x"]]
    with pytest.raises(KeyError):
        d.cdf(pd.DataFrame(0.0, index=[("a", 1)], columns=["y"]))


def test_seeded_draws_of_a_subset_of_paths_are_the_subset_of_the_draws(walks):
    d = SamplePaths(walks, random_state=3, columns=["y", "z"])
    expected = d.sample(7).loc[(slice(None), [1, 4]), ["z"]]
    pd.testing.assert_frame_equal(d.loc[[1, 4], ["z"]].sample(7), expected)


# --- sktime's metrics -------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", [pd.RangeIndex(H), PANEL], ids=["series", "panel"])
@pytest.mark.parametrize("name", ALL)
def test_sktime_metrics_score_one_and_two_columns(name, index):
    d = make(name, index=index, columns=["y", "z"])
    y = d.sample() + 0.5
    crps = CRPS(multioutput="raw_values")(y, d)
    assert list(crps.columns) == ["y", "z"]
    expected = [(d.loc[:, [c]].energy(y[[c]]) - d.loc[:, [c]].energy() / 2).to_numpy().mean() for c in "yz"]
    np.testing.assert_allclose(crps.to_numpy().ravel(), expected, rtol=1e-12)
    assert CRPS()(y[["z"]], d.loc[:, ["z"]]) == pytest.approx(expected[1], rel=1e-12)

    log_loss = LogLoss(multioutput="raw_values")(y, d).to_numpy().ravel()
    np.testing.assert_allclose(log_loss, -d.log_pdf(y).mean(), rtol=1e-12)
    if "uniform" not in name:
        assert np.isfinite(log_loss).all() == (name != "paths")

    for alpha in ALPHAS:
        pinball = PinballLoss(multioutput="raw_values", score_average=False)(y, d.quantile(ALPHAS))
        gap = y.to_numpy() - d.quantile_array(alpha)[0]
        by_hand = np.maximum(alpha * gap, (alpha - 1) * gap).mean(0)
        np.testing.assert_allclose([pinball["y", alpha], pinball["z", alpha]], by_hand, rtol=1e-12)


@pytest.mark.parametrize("name", ["weighted normal", "weighted t", "weighted uniform", "paths"])
def test_crps_equals_the_integrated_squared_error_of_the_cdf(name):
    d = make(name).iloc[[2], [1]]
    y, cell = d.mean() + 1, d.iat[0, 0]
    grid = np.linspace(-60, 60, 12_001)
    f = np.array([cell.cdf(x) for x in grid])
    expected = ((f - (grid >= y.iloc[0, 0])) ** 2).sum() * (grid[1] - grid[0])
    assert CRPS()(y, d) == pytest.approx(expected, abs=6e-3)


# --- speed ------------------------------------------------------------------------------------------------


def test_quantiles_and_energy_cost_a_bounded_number_of_cdf_evaluations():
    d = PathMixture(**components("normal", (240, 3, 60)))
    x = d.mean()

    def seconds(call):
        best = np.inf
        for _ in range(3):
            start = time.perf_counter()
            call()
            best = min(best, time.perf_counter() - start)
        return best

    one = seconds(lambda: d.cdf(x))
    assert seconds(lambda: d.quantile_array(np.linspace(0.1, 0.9, 9))) < 9 * 60 * one
    assert seconds(d.energy) < 60 * 20 * one


def test_single_values_have_a_probability_and_others_have_none():
    """Counts: the probability of no demand was 0."""
    loc, tiny = np.array([[[0.0, 1.0, 4.0]], [[0.0, 2.0, 4.0]]]), 4e-12
    dist = PathMixture(
        loc, tiny, weights=[[[0.6, 0.3, 0.1]], [[0.5, 0.5, 0.0]]], family="uniform", columns=["y"]
    )
    for value, expected in ((0.0, [0.6, 0.5]), (1.0, [0.3, 0.0]), (1.5, [0.0, 0.0])):
        x = pd.DataFrame(np.full((2, 1), value), dist.index, dist.columns)
        np.testing.assert_allclose(dist.pmf(x)["y"], expected)
        np.testing.assert_allclose(np.exp(dist.log_pmf(x)["y"]), expected)
    assert dist.get_tag("distr:measuretype") == "mixed"
    assert dist.loc[[1]].pmf(pd.DataFrame([[0.0]], [1], ["y"])).iloc[0, 0] == 0.5
    assert PathMixture(loc, 0.5, columns=["y"]).get_tag("distr:measuretype") == "continuous"


def test_probabilities_of_counts_add_up_to_one():
    demand = np.random.default_rng(0).poisson(0.6, 60).astype(float)
    y = pd.Series(demand, pd.period_range("2020-01", periods=60, freq="M"))
    dist = TaylorformerForecaster(random_state=0).fit(y, fh=[1, 2]).predict_proba()
    mass = sum(dist.pmf(0 * dist.mean() + k).to_numpy() for k in range(30))
    np.testing.assert_allclose(mass, 1.0, atol=1e-6)
    for k in range(6):  # the smallest value with such a probability: not the next one
        below = dist.cdf(0 * dist.mean() + k)
        for row, column in np.ndindex(below.shape):
            level = below.iloc[row, column]
            assert dist.ppf(level).iloc[row, column] <= k < dist.ppf(level + 1e-9).iloc[row, column]


def test_more_draws_than_paths_are_told():
    """A thousand draws of a hundred paths look like a thousand paths: their tails are no finer."""
    d = SamplePaths(np.random.default_rng(0).normal(size=(100, 2, 1)))
    with pytest.warns(UserWarning, match=r"from 100 paths; .* set num_samples=1000"):
        d.sample(1000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        d.sample(100)
        d.sample(3)


@pytest.mark.parametrize("kind", ["t", "normal"])
def test_quantiles_that_are_averaged_are_off_by_less_than_a_ten_thousandth(kind):
    params = components(kind, (20, C, 30))
    shape = {"df": params["df"]} if "df" in params else {}
    family = find_component("studentt" if shape else "normal")
    mixture = Mixture(family, params["mu"], params["sigma"], None, shape)
    near, exact = mixture.at_levels(ALPHAS, ROUGH_STEP), mixture.at_levels(ALPHAS)
    assert np.abs((near - exact) / params["sigma"].min(-1)[..., None]).max() < 1e-4
