"""What every family of distributions must do, one that is defined here, outside the package, among them."""

from __future__ import annotations

import pickle
from dataclasses import replace
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import scipy.stats
import torch
from outside import LaplaceFamily
from torch import distributions

from taylorformer_forecast.core.families import (
    FAMILIES,
    LocationScaleFamily,
    affine,
    components,
    draw,
    family_of,
    find_component,
    find_family,
    point_forecast,
    register,
    registry,
)
from taylorformer_forecast.core.sampling import draw_paths
from taylorformer_forecast.models.lam import LAMTransformer


class Gumbel(distributions.Gumbel):
    """Of its own, so that the package may have a family of torch's."""


class GumbelFamily(LocationScaleFamily):
    """One that is not symmetric: its mean is not its location."""

    kind = Gumbel
    n_params = 2

    def distribution(self, raw, loc, scale=1.0):
        return Gumbel(loc + scale * raw[..., 0], scale * self.positive(raw[..., 1]), validate_args=False)

    def cdf(self, z, shape):
        return np.exp(-np.exp(-np.maximum(z, -30.0)))

    def log_pdf(self, z, shape):
        z = np.maximum(z, -30.0)
        return -z - np.exp(-z)


@pytest.fixture(autouse=True, scope="module")
def _registered():
    """Register both as a user does at import, and leave the registry to other tests as it was."""
    with mock.patch.dict(registry.FAMILIES), mock.patch.dict(registry._BY_KIND):
        register("outside_laplace", LaplaceFamily)
        register("outside_gumbel", GumbelFamily)
        yield


NAMES = sorted([*registry.FAMILIES, "outside_gumbel", "outside_laplace"])
WITH_DENSITY = [name for name in NAMES if name not in ("mae", "mse")]


@pytest.fixture(autouse=True)
def _exact(request):
    """Mathematics in float64; forecasters in their own precision."""
    if "forecaster" not in request.node.name and "darts" not in request.node.name:
        request.getfixturevalue("float64")


def randn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def predict(name, shape=(3, 2)):
    family = find_family(name)
    raw = 0.7 * randn(*shape, family.n_params)
    return family(raw, 3 + randn(*shape, seed=1), 0.5 + randn(*shape, seed=2).square())


def mixture_of(name, n_paths=1):
    """What the sktime forecasters return for some distributions: the mixture over paths."""
    pytest.importorskip("sktime")
    from taylorformer_forecast.sktime.distributions import PathMixture

    parts = components(predict(name, (n_paths, 3, 2))).map(
        lambda value: value.movedim(0, -2).flatten(-2)  # (3, 2, S * K)
    )
    weights = None if parts.weights is None else parts.weights.numpy()
    shape = {key: value.numpy() for key, value in parts.shape.items()}
    return PathMixture(
        parts.loc.numpy(), parts.scale.numpy(), weights, family=parts.family, shape_params=shape or None
    )


def grid_of(d, tail=1e-6):
    """Points over nearly all of a distribution, dense where it is narrow: (n, 3, 2)."""
    knots = np.linspace(-1, 1, 201)
    quantiles = d.quantile_array(scipy.stats.norm.cdf(knots * scipy.stats.norm.isf(tail)))
    fine = np.linspace(-1, 1, 1601)
    return np.apply_along_axis(lambda x: np.interp(fine, knots, x), 0, quantiles)


@pytest.mark.parametrize("time", ["first", "second"])
def test_a_family_that_a_test_registers_is_gone_after_it(time):
    assert "another" not in FAMILIES
    register("another", LaplaceFamily)


def test_a_name_that_is_taken_is_refused():
    with pytest.raises(ValueError, match="there is a family named 'normal' already"):
        register("normal", LaplaceFamily)


class Scored(LaplaceFamily):
    """A known kind of distributions with another loss."""

    def loss(self, distribution, value):
        return (value - distribution.mean).abs() + 7.0


def test_networks_minimise_the_loss_of_their_own_family(make_window):
    register("scored", Scored)
    net = LAMTransformer(context_length=7, horizon=5, d_model=8, n_heads=2, distribution="scored")
    window = make_window()
    error = (window.targets[0] - net(window).mean).abs()[window.targets[1]].mean()
    torch.testing.assert_close(net.loss(window), 7.0 + error)


@pytest.mark.parametrize("method", ["components", "point_forecast", "sample"])
def test_what_another_family_does_to_such_distributions_is_not_changed_in_silence(method):
    other = type("Other", (LaplaceFamily,), {method: lambda self, distribution, *args: distribution.mean})
    message = f"Other has a {method} of its own, but LaplaceFamily serves all Laplace distributions"
    with pytest.raises(ValueError, match=message):
        register("other", other)
    assert "other" not in FAMILIES


@pytest.mark.parametrize("name", ["noise", "cdf", "symmetric", "support", "sample_paths"])
def test_methods_and_properties_of_a_known_kind_are_those_of_its_first_family(name):
    other = type("Other", (LaplaceFamily,), {name: (0.0, 1.0)})
    with pytest.raises(ValueError, match=f"Other has a {name} of its own, but LaplaceFamily serves all"):
        register("other", other)
    assert "other" not in FAMILIES


def test_other_parameters_helpers_and_equal_properties_are_a_familys_own():
    own = {"positive": lambda self, raw: raw.exp(), "n_params": 3, "helper": 1, "support": (-np.inf, np.inf)}
    register("other", type("Other", (LaplaceFamily,), own))
    assert find_family("other").n_params == 3


def test_a_family_that_is_corrected_serves_once_the_names_of_its_kind_are_deleted():
    corrected = type("Corrected", (LaplaceFamily,), {"symmetric": False})
    register("scored", Scored)
    del FAMILIES["outside_laplace"]
    with pytest.raises(ValueError, match="Corrected has a symmetric of its own"):
        register("outside_laplace", corrected)
    del FAMILIES["scored"]
    register("outside_laplace", corrected)
    assert type(family_of(predict("outside_laplace"))) is corrected


def test_all_registered_families_are_tested():
    assert set(NAMES) == set(FAMILIES)


# --- one distribution ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_components_and_back_is_the_same_distribution(name):
    d = predict(name)
    again = family_of(d).rebuild(components(d))
    assert type(again) is type(d)
    torch.testing.assert_close(again.mean, d.mean)
    torch.testing.assert_close(again.variance, d.variance)


@pytest.mark.parametrize("name", NAMES)
def test_a_change_of_units_moves_a_distribution_as_it_moves_values(name):
    d, loc, factor = predict(name), randn(3, 2, seed=3), 0.5 + randn(3, 2, seed=4).square()
    moved, y = affine(d, loc, factor), d.mean + 0.1
    torch.testing.assert_close(moved.mean, loc + factor * d.mean)
    torch.testing.assert_close(moved.stddev, factor * d.stddev)
    torch.testing.assert_close(point_forecast(moved), loc + factor * point_forecast(d))
    parts = components(d).affine(loc[..., None], factor[..., None])
    torch.testing.assert_close(components(moved).loc, parts.loc)
    torch.testing.assert_close(components(moved).scale, parts.scale)
    if name in WITH_DENSITY:
        torch.testing.assert_close(moved.log_prob(loc + factor * y), d.log_prob(y) - factor.log())


@pytest.mark.parametrize("name", NAMES)
def test_losses_are_finite_and_so_are_their_gradients(name):
    family = find_family(name)
    raw = randn(5, 2, family.n_params).requires_grad_()
    loss = family.loss(family(raw, torch.zeros(5, 2)), randn(5, 2, seed=1))
    assert loss.shape == (5, 2)
    loss.sum().backward()
    assert bool(raw.grad.isfinite().all())


@pytest.mark.parametrize("name", NAMES)
def test_families_are_copied_and_saved(name):
    family = find_family(name, "softplus")
    assert pickle.loads(pickle.dumps(family)) == family
    assert find_family(family) is family


# --- draws --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("given", [False, True])
def test_draws_have_the_moments_of_their_distribution(name, given):
    d, n = predict(name), 20_000
    noise = randn(3, n, 1, 2, seed=7) if given else None
    conditional = affine(d, torch.zeros(()), torch.ones(()))
    parts = components(conditional).map(lambda value: value[:, None])
    samples = draw_paths(family_of(d).rebuild(parts), n, torch.Generator().manual_seed(0), noise)
    paths = samples.paths[:, :, 0]
    error = d.stddev / n**0.5
    assert ((paths.mean(1) - d.mean).abs() <= 5 * error + 1e-12).all()
    close = 0.25 if name == "studentt" else 0.06
    torch.testing.assert_close(paths.std(1), d.stddev, rtol=close, atol=1e-12)
    if given and name in WITH_DENSITY:
        together = torch.corrcoef(torch.stack([noise[0, :, 0, 0], paths[0, :, 0]]))[0, 1]
        assert together > 0.3


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("given", [False, True])
def test_draws_of_16_bits_are_those_of_32(name, given):
    """Multiples of 2^-11 hold no rare level: one draw in two thousand would be an extreme one."""
    family = find_family(name)
    raw = torch.zeros(20_000, 1, family.n_params)
    noise = torch.randn(20_000, 1, dtype=torch.float32, generator=torch.Generator().manual_seed(1))
    noise = noise if given else None
    found = {
        dtype: draw(
            family(raw.to(dtype), torch.zeros(20_000, 1, dtype=dtype)),
            torch.Generator().manual_seed(0),
            noise,
        )
        for dtype in (torch.float16, torch.float32)
    }
    assert found[torch.float16].dtype == torch.float16
    short, long = (values.float().sort(0).values for values in found.values())
    torch.testing.assert_close(short, long, rtol=0.01, atol=0.02)


@pytest.mark.parametrize("name", NAMES)
def test_draws_repeat_with_their_generator_and_leave_the_global_one_alone(name):
    d, before = predict(name), torch.get_rng_state()
    first, second = (draw(d, torch.Generator().manual_seed(5)) for _ in range(2))
    assert torch.equal(first, second)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("name", NAMES)
def test_the_standard_member_has_mean_zero_and_deviation_one(name):
    blank = family_of(predict(name)).rebuild(components(predict(name)).standard())
    if name in ("mae", "mse"):  # their component has a deviation, a point has none
        assert (blank.mean == 0).all()
        return
    torch.testing.assert_close(blank.mean, torch.zeros(3, 2), atol=1e-3, rtol=0)
    torch.testing.assert_close(blank.stddev, torch.ones(3, 2), atol=0.02, rtol=0)


# --- mathematics of the components, and of mixtures over paths ----------------------------------------------


@pytest.mark.parametrize("name", WITH_DENSITY)
@pytest.mark.parametrize("n_paths", [1, 5])
def test_density_distribution_function_and_moments_agree_by_integration(name, n_paths):
    d = mixture_of(name, n_paths)
    x = grid_of(d)
    pdf = np.stack([d._pdf(one) for one in x])
    cdf = np.stack([d._cdf(one) for one in x])
    mean, variance = d.mean().to_numpy(), d.var().to_numpy()
    rough = {"quantile": 2e-2}.get(name, 1e-3)  # its density jumps
    np.testing.assert_allclose(np.trapezoid(pdf, x, axis=0), cdf[-1] - cdf[0], rtol=rough)
    np.testing.assert_allclose(np.trapezoid(pdf * x, x, axis=0), mean, rtol=rough, atol=2 * rough)
    square = np.trapezoid(pdf * (x - mean) ** 2, x, axis=0)
    np.testing.assert_allclose(square, variance, rtol=0.1 if name == "studentt" else 3 * rough)


@pytest.mark.parametrize("name", WITH_DENSITY)
def test_moments_are_those_of_torch(name):
    d = predict(name, (1, 3, 2))
    ours = mixture_of(name)
    np.testing.assert_allclose(ours.mean().to_numpy(), d.mean[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(ours.var().to_numpy(), d.variance[0], rtol=1e-4)
    np.testing.assert_allclose(np.asarray(ours.log_pdf(d.mean[0].numpy() + 0.1)), d.log_prob(d.mean + 0.1)[0])


@pytest.mark.parametrize("name", WITH_DENSITY)
@pytest.mark.parametrize("n_paths", [1, 7])
def test_mixtures_over_paths_have_the_right_quantiles_and_energies(name, n_paths):
    d = mixture_of(name, n_paths)
    levels = np.array([1e-6, 0.01, 0.2, 0.5, 0.7, 0.99, 1 - 1e-6])
    q = d.quantile_array(levels)
    assert (np.diff(q, axis=0) > 0).all()
    np.testing.assert_allclose([np.asarray(d.cdf(x)) for x in q], levels[:, None, None] + 0 * q, rtol=1e-8)
    x = grid_of(d, 1e-7)
    f = np.stack([d._cdf(one) for one in x])
    expected = 2 * np.trapezoid(f * (1 - f), x, axis=0).sum(1)
    np.testing.assert_allclose(d.energy()["energy"], expected, rtol=2e-3)
    y = d.mean().to_numpy() + 0.7
    around = np.trapezoid(np.where(x < y, f, 1 - f), x, axis=0).sum(1)
    np.testing.assert_allclose(d.energy(y)["energy"], around, rtol=5e-3)


@pytest.mark.parametrize("name", WITH_DENSITY)
def test_draws_of_mixtures_follow_their_distribution_function(name):
    d = mixture_of(name, 4)
    drawn = d._draw(np.random.default_rng(0), 2000)
    levels = np.stack([d._cdf(one) for one in drawn])[:, 0, 0]
    assert scipy.stats.kstest(levels, "uniform").pvalue > 0.005


def test_numeric_defaults_agree_with_closed_forms():
    class Plain(LocationScaleFamily):
        """The Normal family without any closed form."""

        kind = torch.distributions.Normal
        n_params = 2
        distribution = find_family("normal").distribution
        cdf = lambda self, z, shape: scipy.stats.norm.cdf(z)  # noqa: E731
        log_pdf = lambda self, z, shape: scipy.stats.norm.logpdf(z)  # noqa: E731

    own, known, z = Plain(), find_component("normal"), np.linspace(-6, 6, 25)
    assert own.mean({}) == pytest.approx(0, abs=1e-12)
    assert own.variance({}) == pytest.approx(1, rel=1e-9)
    np.testing.assert_allclose(own.distance(z, {}), known.distance(z, {}), rtol=1e-7)
    p = np.array([1e-9, 0.01, 0.5, 0.8, 0.999])
    np.testing.assert_allclose(own.quantile(p, {}), known.quantile(p, {}), rtol=1e-9, atol=1e-12)


# --- from a registered name to forecasts --------------------------------------------------------------------


def series(n=120):
    t = np.arange(n)
    y = 50 + 0.1 * t + 5 * np.sin(2 * np.pi * t / 12) + np.random.default_rng(0).laplace(size=n)
    return pd.Series(y, pd.period_range("2010-01", periods=n, freq="M"))


@pytest.mark.parametrize("kind", ["TaylorformerForecaster", "LAMForecaster"])
@pytest.mark.parametrize("name", ["outside_laplace", "outside_gumbel"])
def test_forecaster_with_a_family_from_outside_fits_predicts_and_is_saved(kind, name, tmp_path):
    hosts = pytest.importorskip("taylorformer_forecast.sktime")
    small = {"d_model": 8, "n_heads": 2, "n_layers": 2, "max_steps": 3, "num_samples": 20, "random_state": 0}
    y = series()
    forecaster = getattr(hosts, kind)(**small, distribution=name).fit(y, fh=[1, 2, 5])
    quantiles = forecaster.predict_quantiles(alpha=[0.1, 0.5, 0.9])
    assert (np.diff(quantiles.to_numpy(), axis=1) > 0).all()
    assert (forecaster.predict_var().to_numpy() > 0).all()
    proba = forecaster.predict_proba()
    np.testing.assert_allclose(proba.mean().to_numpy().ravel(), forecaster.predict().to_numpy().ravel())
    np.testing.assert_allclose(proba.quantile([0.1, 0.5, 0.9]).to_numpy(), quantiles.to_numpy())
    assert np.isfinite(proba.log_pdf(proba.mean()).to_numpy()).all()
    assert proba.sample(7).shape == (21, 1)
    assert forecaster.predict_proba(marginal=False).sample(20).shape == (60, 1)
    saved = pickle.loads(pickle.dumps(forecaster))
    pd.testing.assert_frame_equal(saved.predict_quantiles(alpha=[0.1, 0.5, 0.9]), quantiles)
    forecaster.save(tmp_path / "saved")
    loaded = type(forecaster).load_from_path(tmp_path / "saved.zip")
    pd.testing.assert_frame_equal(loaded.predict_quantiles(alpha=[0.1, 0.5, 0.9]), quantiles)


@pytest.mark.parametrize("kind", ["TaylorformerModel", "LAMModel"])
@pytest.mark.parametrize("name", ["outside_laplace", "mixture", "quantile"])
def test_darts_model_with_a_registered_family_fits_predicts_and_is_saved(kind, name, tmp_path):
    pytest.importorskip("darts")
    from darts import TimeSeries

    import taylorformer_forecast.darts as hosts

    y = TimeSeries.from_series(series().to_timestamp().astype("float32"))
    quiet = {"accelerator": "cpu", "enable_progress_bar": False, "logger": False}
    likelihood = hosts.FamilyLikelihood(name)
    model = getattr(hosts, kind)(
        24,
        8,
        d_model=8,
        n_heads=2,
        n_epochs=1,
        likelihood=likelihood,
        random_state=0,
        pl_trainer_kwargs={**quiet, "enable_model_summary": False},
    )
    model.fit(y)
    paths = model.predict(10, num_samples=50, random_state=1).all_values()
    assert paths.shape == (10, 1, 50)
    assert np.isfinite(paths).all()
    assert (paths.std(2) > 0).all()
    found = model.predict(8, predict_likelihood_parameters=True).values()
    assert found.shape == (8, likelihood.num_parameters)
    assert np.isfinite(found).all()
    model.save(str(tmp_path / "model.pt"))
    loaded = type(model).load(str(tmp_path / "model.pt"))
    assert loaded.likelihood == likelihood
    again = loaded.predict(10, num_samples=50, random_state=1).all_values()
    np.testing.assert_allclose(again, paths, rtol=1e-5)


def test_variances_of_student_t_are_finite_however_small_the_degrees_of_freedom():
    raw = torch.zeros(5, 1, 3)
    raw[:, 0, 2] = torch.tensor([-1e6, -100.0, -12.0, -10.0, 0.0])
    found = find_family("studentt")(raw, torch.zeros(5, 1))
    assert found.variance.isfinite().all()
    assert (found.variance[:2] < 25).all()  # no more than a few of the widths of its intervals
    assert (found.df[2:] > 2.1).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", ["studentt", "outside_laplace"])
def test_a_uniform_number_of_zero_makes_no_absurd_draw(name, dtype, monkeypatch):
    """In single precision one in 2^24 is zero; the next larger number gives draws about as large."""
    loc = torch.zeros(1, 1, dtype=dtype)
    raw = torch.zeros(1, 1, find_family(name).n_params, dtype=dtype)
    marginals = find_family(name)(raw, loc)
    drawn = []
    for u in (0.0, torch.finfo(dtype).eps / 2):  # the smallest other number
        monkeypatch.setattr(torch, "rand", lambda shape, u=u, **options: torch.full(shape, u, dtype=dtype))
        drawn.append(float(draw(marginals, torch.Generator())))
    assert np.isfinite(drawn).all()
    assert abs(drawn[0]) < 1.2 * abs(drawn[1])


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_a_mixture_starts_with_components_side_by_side_that_have_its_mean_and_deviation_together(n):
    family = replace(find_family("mixture"), n_components=n)
    d = family(torch.zeros(1, 1, 3 * n), torch.full((1, 1), 5.0), torch.full((1, 1), 2.0))
    np.testing.assert_allclose([d.mean.item(), d.stddev.item()], [5.0, 2.0], rtol=2e-3)
    assert (components(d).loc[0, 0].diff() > 0.5).all()
