"""UNN against its formulas and the Taylorformer's layer; columns, series and the first point."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from taylorformer_forecast.core.families import components
from taylorformer_forecast.core.rolling import forecast_paths
from taylorformer_forecast.core.sampling import sample_paths
from taylorformer_forecast.core.window import Window, join_columns
from taylorformer_forecast.models.unn import UNN

pytestmark = pytest.mark.usefixtures("float64")


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def close(got, expected):
    torch.testing.assert_close(got, expected, rtol=1e-10, atol=1e-10)


def built(**options):
    """Return a tiny network, no parameter of which is neutral."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = UNN(**{"d_model": 8, "n_heads": 2, "n_layers": 2, "dim_encoding": 4, **options})
        with torch.no_grad():
            for parameter in net.parameters():
                parameter.add_(0.2 * torch.randn_like(parameter))
    return net.eval()


def of_series(w, n_series=2, seed=3):
    return replace(w, series=torch.randint(n_series, w.y.shape[:2], generator=generator(seed)))


# ---- the formulas -------------------------------------------------------------------------------------


@pytest.mark.parametrize("history_indicator", [True, False])
def test_the_network_of_one_head_and_layer_is_that_of_the_formulas(make_window, history_indicator):
    net = built(
        n_heads=1,
        n_layers=1,
        dim_encoding=0,
        rank=0,
        null=False,
        residual=False,
        decay=False,
        history_indicator=history_indicator,
    )
    w = of_series(make_window(n_context=1, n_targets=6, times="unordered"))
    heads, e = net.attention, 8
    with torch.no_grad():
        distribution = net(w)
        for b in range(3):
            x, k = net.embed_x(w.times[b]), net.embed_series.weight[w.series[b]]
            of_point = x + k if history_indicator else x
            for i in range(1, 7):
                query = heads.query(of_point[i])
                scores = torch.stack([query @ heads.key(of_point[m]) / e**0.5 for m in range(i)])
                share = scores.exp() / scores.exp().sum()
                value = torch.cat([w.y[b], k], -1) if history_indicator else w.y[b]
                attended = heads.out(sum(share[m] * heads.value(value[m]) for m in range(i)))
                out = net.to_params(F.leaky_relu(net.hidden(torch.cat([attended, x[i], k[i]])), 0.01))
                close(distribution.mean[b, i - 1, 0], out[0])
                close(distribution.stddev[b, i - 1, 0], F.softplus(out[1]) + 1e-3)


@pytest.mark.parametrize("missing", ["none", "rows"])
def test_the_smoother_is_the_taylorformers_layer_with_values_y(make_window, missing):
    net = built(history_indicator=False, null=False, decay=False)
    w = of_series(make_window(n_context=1, n_targets=9, missing_targets=missing))
    mask, layer = w.attention_mask(), net.attention
    weights, values, _ = net.smoother(w)
    h = net.embed_x(net.encoding(w.times))
    h = net.blocks[0](h, h, mask)
    average = layer.average(h[:, 1:], h, w.y, w.observed, mask[:, 1:])
    close(layer.project_average(weights @ values[:, None]), layer.project_average(average))
    if missing == "none":  # the whole layer, and with a single context point the mask is strict
        close(layer.project_average(average), layer.merge(weights @ layer.split(layer.value(w.y))))
        assert torch.equal(mask[0, 1:], torch.ones(10, 10).tril(-1).bool()[1:])


def test_scores_have_a_part_of_low_rank_that_depends_on_the_series_alone(make_window):
    net, w = built(n_series=5, d_model=16, rank=2, null=False), make_window(n_context=1, n_targets=30)
    w = replace(of_series(w, 5), t=torch.zeros_like(w.t))
    with torch.no_grad():
        net.attention.query.weight.zero_()
        net.attention.query.bias.zero_()
        weights = net.smoother(w)[0][0, :, -1, :-1].log()  # of the last point, by the series of the others
        table = net.attention.split(net.row(net.embed_series.weight)[None])
        table = (table @ net.attention.split(net.column(net.embed_series.weight)[None]).mT)[0]
    assert torch.linalg.matrix_rank(table).tolist() == [2, 2]
    of_last, of_others = w.series[0, -1], w.series[0, :-1]
    expected = table[:, of_last][:, of_others]
    close(weights - weights[:, :1], expected - expected[:, :1])


def test_scores_fall_with_the_distance_in_time_at_the_rate_of_each_head(make_window):
    net, w = built(rank=0, null=False), of_series(make_window(n_context=9, n_targets=1, dim_t=1))
    with torch.no_grad():
        net.attention.query.weight.zero_()
        net.attention.query.bias.zero_()
        weights = net.smoother(w)[0][:, :, 0, :9].log()
    distance = (w.t[:, 9:] - w.t[:, :9])[:, None]
    rate = net.log_rate.detach().exp()[:, None]
    close(weights - weights[..., :1], -rate * (distance - distance[..., :1]))
    rates = UNN(n_heads=4).log_rate.detach().exp()
    assert rates[0] == pytest.approx(1.0)  # of the span of a context: the first sees all, the last one step
    assert rates[-1] == pytest.approx(200.0)


# ---- series -------------------------------------------------------------------------------------------


def test_series_may_be_numbered_in_any_order(build_case, numbers):
    case = build_case("unn")
    w, net, other = case.window(), case.net(), case.net()
    order = torch.tensor([2, 0, 1])  # series number i becomes order[i]
    with torch.no_grad():
        other.embed_series.weight[order] = net.embed_series.weight
    close(numbers(other(replace(w, series=order[w.series]))), numbers(net(w)))


def test_columns_may_come_in_any_order(make_window, numbers):
    net, other = built(n_series=3), built(n_series=3)
    w = make_window(dim_y=3, n_targets=1, missing="entries")
    w = replace(w, observed=w.observed & (torch.arange(8)[:, None] < 7))  # none is seen by another
    order = torch.tensor([2, 0, 1])
    with torch.no_grad():
        other.embed_series.weight.copy_(net.embed_series.weight[order])
    permuted = replace(w, y=w.y[..., order], observed=w.observed[..., order])
    first, second = (components(n(v)).loc for n, v in ((net, w), (other, permuted)))
    close(second, first[:, :, order])


@pytest.mark.parametrize(("name", "matters"), [("unn", True), ("unn-notes", False)])
def test_the_series_of_earlier_points_matter_only_with_the_indicator(build_case, name, matters, numbers):
    case = build_case(name)
    w, net = case.window(), case.net()
    series = w.series.clone()
    series[:, :3] = (series[:, :3] + 1) % 2
    changed = (numbers(net(replace(w, series=series))) != numbers(net(w))).any(-1)
    assert bool(changed.all()) == bool(changed.any()) == matters


@pytest.mark.parametrize("options", [{}, {"rank": 0, "decay": False}, {"history_indicator": False}])
def test_the_first_point_has_a_distribution_of_its_own(make_window, numbers, options):
    net = built(**options)
    w = of_series(make_window(n_context=0, n_targets=6))
    whole = numbers(net(w))
    assert whole.shape[1] == 6
    assert torch.isfinite(whole).all()
    alone = numbers(net(w.points(slice(0, 1))))
    close(whole[:, :1], alone)
    later = numbers(net(replace(w, y=w.y + 1)))
    assert torch.equal(later[:, 0], whole[:, 0])
    assert not (later[:, 1:] == whole[:, 1:]).all(-1).any()
    assert torch.isfinite(sample_paths(net, w, 3, generator()).paths).all()
    weights, values, _ = net.smoother(w)
    close((weights @ values[:, None])[:, :, 0], net.null_value.expand(3, 2, -1))
    close(weights.sum(-1), torch.ones(3, 2, 6))


# ---- columns ------------------------------------------------------------------------------------------


def test_columns_are_predicted_as_points_of_one_set(make_window, numbers):
    net = built(n_series=3, dim_covariates=2)
    w = make_window(dim_y=3, dim_covariates=2, missing="entries", missing_targets="entries")
    points = join_columns(w)
    by_point = numbers(net(points)).unflatten(1, (-1, 3))  # (B, T, 3, 2)
    close(numbers(net(w)), by_point.mT.flatten(2))
    columns, of_points = (sample_paths(net, v, 4, generator()) for v in (w, points))
    assert torch.equal(columns.paths, of_points.paths.view(3, 4, 5, 3))
    c, p = columns.conditionals, of_points.conditionals
    assert torch.equal(c.loc, p.loc.view(3, 4, 5, 3, 1))


def test_an_entry_that_was_not_observed_is_not_in_the_set(make_window, numbers):
    net = built(n_series=2)
    w = make_window(dim_y=2, n_windows=1, missing="entries", missing_targets="entries")
    points = join_columns(w)
    kept = points.visible[0]
    shorter = Window(
        points.t[:, kept],
        points.y[:, kept],
        series=points.series[:, kept],
        n_context=int(kept[: points.n_context].sum()),
    )
    assert not kept.all()
    close(numbers(net(points))[:, kept[points.n_context :]], numbers(net(shorter)))


def test_columns_of_one_time_and_of_others_reach_a_forecast(make_window, numbers):
    net, w = built(n_series=2), make_window(dim_y=2)
    before = components(net(w)).loc
    for time, column in ((2, 0), (7, 0), (2, 1)):
        y = w.y.clone()
        y[:, time, column] += 1
        after = components(net(replace(w, y=y))).loc
        changed = (after != before)[..., 0].all(0)  # (T, D)
        # The first target is point 7, whose second column is conditioned on its first.
        assert changed.tolist() == [[time < 7, True], *[[True, True]] * 4]


def test_each_column_has_a_unit_of_its_own(make_window):
    net, w = built(n_series=2), make_window(dim_y=2, n_context=6, n_targets=5, missing="entries")
    shift, factor = torch.tensor([1e3, -2.0]), torch.tensor([20.0, 0.1])
    moved = replace(w, y=w.y * factor + shift)
    first, second = (
        forecast_paths(net, v, 4, time_unit=1.0, max_targets=2, generator=generator()).paths
        for v in (w, moved)
    )
    close(second, first * factor + shift)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"distribution": "gamma"}, "distribution='gamma' is not one of"),
        ({"n_series": 0}, "n_series=0, but it must be at least 1"),
        ({"n_layers": 0}, "n_layers=0, but it must be at least 1"),
        ({"rank": -1}, "rank=-1, but it must be at least 0"),
        ({"d_model": 10, "n_heads": 4}, "d_model=10 is not a multiple of n_heads=4"),
    ],
)
def test_options_that_do_not_fit_are_refused_with_their_value(options, message):
    with pytest.raises(ValueError, match=message):
        UNN(**options)


def test_windows_of_other_columns_are_refused(make_window):
    with pytest.raises(ValueError, match="the window has 1 columns, but the network was built for 2 series"):
        built(n_series=2)(make_window())
