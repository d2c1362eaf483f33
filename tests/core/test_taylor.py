"""Neighbours, slopes, gradients, and the normalisation of derivatives."""

from __future__ import annotations

import math

import pytest
import torch

from taylorformer_forecast.core.neighbours import gather_points, nearest
from taylorformer_forecast.core.taylor import DerivativeNorm, LocalTaylor

pytestmark = pytest.mark.usefixtures("float64")


def everyone(n, n_windows=1):
    """Let every point be a candidate for every other."""
    return torch.ones(n_windows, n, n, dtype=torch.bool)


def by_hand(x, candidates, k, prefer_earlier):
    """Sort the candidates of each point by distance, then by time or by position."""
    index = torch.empty(*x.shape[:2], k, dtype=torch.long)
    valid = torch.zeros(*x.shape[:2], k, dtype=torch.bool)
    for b in range(x.shape[0]):
        for i in range(x.shape[1]):
            found = []
            for j in range(x.shape[1]):
                if candidates[b, i, j] and j != i:
                    distance = math.dist(x[b, i].tolist(), x[b, j].tolist())
                    tie = x[b, j, 0].item() if prefer_earlier else 0.0
                    found.append((round(distance, 6) if prefer_earlier else distance, tie, j))
            order = [j for _, _, j in sorted(found)][:k]
            valid[b, i, : len(order)] = True
            index[b, i] = torch.tensor(order + [i] * (k - len(order)))
    return index, valid


@pytest.mark.parametrize("prefer_earlier", [True, False])
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("dim_t", [1, 2])
@pytest.mark.parametrize("times", ["irregular", "unordered", "on a lattice"])
def test_nearest_points_are_those_found_by_sorting_each_row(make_window, prefer_earlier, k, dim_t, times):
    w = make_window(dim_t=dim_t, times="irregular" if times == "on a lattice" else times, missing="rows")
    # Quarters are exact, so that ties are; far below the tolerance, every time has a rank of its own.
    x = (4 * w.times).round() / 4 if times == "on a lattice" else w.times
    mask = w.attention_mask()
    if prefer_earlier:
        x[..., 0] += 1e-9 * torch.randperm(12, generator=torch.Generator().manual_seed(0))
    index, valid = nearest(x, mask, k, prefer_earlier)
    expected, exists = by_hand(x, mask, k, prefer_earlier)
    assert torch.equal(valid, exists)
    assert torch.equal(index, expected)


@pytest.mark.parametrize("length", [12, 192, 432])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_on_a_regular_grid_every_point_but_the_first_takes_its_left_neighbour(length, dtype):
    x = torch.linspace(-1, 1, length, dtype=dtype)[None, :, None]
    index, _ = nearest(x, everyone(length), 1)
    assert index[0, :, 0].tolist() == [1, *range(length - 1)]
    order = torch.randperm(length, generator=torch.Generator().manual_seed(0))
    shuffled, _ = nearest(x[:, order], everyone(length), 1)
    assert torch.equal(x[:, order][0, shuffled[0, :, 0]], x[0, index[0, :, 0]][order])


def test_ties_in_two_dimensions_do_not_depend_on_the_order_of_the_points():
    side = torch.arange(4.0)
    x = torch.cartesian_prod(side, side)[None]
    index, _ = nearest(x, everyone(16), 2)
    order = torch.randperm(16, generator=torch.Generator().manual_seed(0))
    shuffled, _ = nearest(x[:, order], everyone(16), 2)
    assert torch.equal(x[0, order][shuffled[0]], x[0, index[0]][order])


def test_the_published_order_gives_exact_ties_to_the_lower_position():
    x = torch.tensor([[[0.0], [1.0], [-1.0], [2.0]]])
    assert nearest(x, everyone(4), 1, prefer_earlier=False)[0].flatten().tolist() == [1, 0, 0, 1]
    assert nearest(x, everyone(4), 1, prefer_earlier=True)[0].flatten().tolist() == [2, 0, 0, 1]


@pytest.mark.parametrize("prefer_earlier", [True, False])
def test_a_point_is_never_its_own_neighbour_even_among_duplicates(prefer_earlier):
    x = torch.tensor([[[0.5], [0.5], [0.5], [2.0]]])
    index, valid = nearest(x, everyone(4), 3, prefer_earlier)
    assert valid.all()
    for i in range(4):
        assert sorted([i, *index[0, i].tolist()]) == [0, 1, 2, 3]
    assert set(index[0, 0, :2].tolist()) == {1, 2}


def test_a_point_without_candidates_has_no_neighbour():
    index, valid = nearest(torch.randn(2, 1, 1), everyone(1, 2), 2)
    assert not valid.any()
    assert (index == 0).all()


def test_gathering_gives_each_column_its_own_points():
    values = torch.arange(12.0).view(1, 3, 4)
    index = torch.tensor([[[[0, 2]], [[1, 1]]]])  # (B, M, K, G): G = 2 divides the four columns
    assert gather_points(values, index)[0, :, 0].tolist() == [[0, 9, 2, 11], [4, 5, 6, 7]]
    shared = torch.tensor([[[[2], [0]]]])
    assert gather_points(values, shared)[0, 0].tolist() == [[8, 9, 10, 11], [0, 1, 2, 3]]


# ---- derivatives --------------------------------------------------------------------------------------


def raw_derivatives(local, x, y, mask=None, observed=None):
    """Find neighbours, then derivatives and labels, both (B, N, X, D); and the neighbours."""
    mask = everyone(x.shape[1], x.shape[0]) if mask is None else mask
    observed = torch.ones_like(y, dtype=torch.bool) if observed is None else observed
    found = local.neighbours(x, mask, observed)
    near = gather_points(y, found.index) * found.valid
    out = local.derivatives((y[:, :, None] - near) * found.valid, found)
    return out[:, :, 0], out[:, :, 2], found


def line(n=9, seed=0):
    """Points on two lines at random times at least 0.05 apart, in random order."""
    g = torch.Generator().manual_seed(seed)
    x = (torch.arange(n) * 0.15 + 0.1 * torch.rand(n, generator=g))[torch.randperm(n, generator=g)]
    x = x[None, :, None]
    return x, torch.cat([3 * x - 1, -0.5 * x], -1), torch.tensor([3.0, -0.5])


@pytest.mark.parametrize("k", [1, 3])
def test_points_on_a_line_have_its_slope_whichever_side_their_neighbours_are(k):
    x, y, slope = line()
    derivative, label, found = raw_derivatives(LocalTaylor(dim_y=2, n_derivative_neighbours=k).eval(), x, y)
    assert (found.offset < 0).any()
    assert (found.offset > 0).any()
    torch.testing.assert_close(derivative[0, :, 0], slope.expand(9, 2), rtol=1e-4, atol=0)
    assert (label == 1).all()


def test_the_published_slopes_change_sign_for_neighbours_on_the_right():
    x, y, slope = line()
    local = LocalTaylor(dim_y=2, published=True).eval()
    derivative, _, found = raw_derivatives(local, x, y)
    side = found.offset[0, :, 0, :, 0].sign()
    assert (side < 0).any()
    torch.testing.assert_close(derivative[0, :, 0], slope * side, rtol=1e-4, atol=0)


def test_slopes_are_averaged_over_the_nearest_neighbours(make_window):
    w = make_window(n_context=8, n_targets=4)
    mask = w.attention_mask()
    derivative, _, _ = raw_derivatives(LocalTaylor(n_derivative_neighbours=3).eval(), w.times, w.y, mask)
    for b in range(3):
        for i in range(12):
            others = [j for j in range(12) if mask[0, i, j] and j != i]
            others.sort(key=lambda j: abs(w.t[b, i] - w.t[b, j]).item())
            slopes = [(w.y[b, i] - w.y[b, j]) / (w.t[b, i] - w.t[b, j]) for j in others[:3]]
            assert derivative[b, i].item() == pytest.approx(sum(slopes).item() / 3, rel=1e-4)


@pytest.mark.parametrize("published", [True, False])
def test_a_slope_beyond_the_clip_is_zero_and_labelled_as_absent(published):
    x, y = torch.tensor([[[0.0], [1.0], [3.0]]]), torch.tensor([[[0.0], [5.0], [0.0]]])
    derivative, label, _ = raw_derivatives(LocalTaylor(published=published, clip=4.0).eval(), x, y)
    assert label.flatten().tolist() == [0.0, 0.0, 1.0]  # slopes 5, 5 and -2.5
    assert derivative.flatten().tolist() == pytest.approx([0.0, 0.0, -2.5], rel=1e-4)


def test_clipped_slopes_are_left_out_of_the_average():
    x, y = torch.tensor([[[0.0], [1.0], [3.0]]]), torch.tensor([[[0.0], [50.0], [6.0]]])
    derivative, label, _ = raw_derivatives(LocalTaylor(n_derivative_neighbours=2, clip=30.0).eval(), x, y)
    # Slopes: 50 and 2 for the first point, 50 and -22 for the second, -22 and 2 for the third.
    assert derivative.flatten().tolist() == pytest.approx([2.0, -22.0, -10.0], rel=1e-4)
    assert (label == 1).all()


@pytest.mark.parametrize("published", [True, False])
@pytest.mark.parametrize("dim_t", [1, 2])
def test_a_single_point_has_no_differences_and_no_derivative(published, dim_t):
    x, y = torch.rand(2, 1, dim_t), torch.randn(2, 1, 1)
    derivative, label, found = raw_derivatives(LocalTaylor(dim_t, published=published).eval(), x, y)
    assert (derivative == 0).all()
    assert (label == 0).all()
    assert (found.offset == 0).all()
    assert not found.valid.any()


def test_two_values_at_one_time_have_no_derivative():
    x, y = torch.tensor([[[0.0], [0.0], [2.0]]]), torch.tensor([[[1.0], [4.0], [5.0]]])
    derivative, label, _ = raw_derivatives(LocalTaylor().eval(), x, y)
    assert derivative[0, :2].flatten().tolist() == [0.0, 0.0]
    assert label[0, :2].flatten().tolist() == [0.0, 0.0]


def test_a_value_at_the_same_time_is_left_out_of_the_average_of_slopes():
    x, y = torch.tensor([[[0.0], [0.0], [2.0]]]), torch.tensor([[[1.0], [4.0], [5.0]]])
    derivative, label, _ = raw_derivatives(LocalTaylor(n_derivative_neighbours=2).eval(), x, y)
    assert derivative[0, :2].flatten().tolist() == pytest.approx([2.0, 0.5], rel=1e-4)
    assert (label == 1).all()


# ---- two dimensions -----------------------------------------------------------------------------------

# Right angles, a narrow angle, different distances, on opposite sides.
WELL_PLACED = {
    "right angle": [[0.1, 0.0], [0.0, 0.1]],
    "oblique": [[0.1, 0.02], [0.1, -0.05]],
    "unequal": [[0.02, 0.01], [-0.05, 0.2]],
    "opposite": [[0.1, 0.02], [-0.1, 0.03]],
}


def plane(neighbours):
    """Put the origin and its two neighbours on two planes; return times and gradients (X, D)."""
    return torch.tensor([[[0.0, 0.0], *neighbours]]), torch.tensor([[1.5, 0.3], [-2.0, 0.7]])


@pytest.mark.parametrize("published", [True, False])
@pytest.mark.parametrize("neighbours", WELL_PLACED.values(), ids=WELL_PLACED)
def test_the_gradient_of_a_plane_is_exact_for_neighbours_that_span_the_plane(
    monkeypatch, published, neighbours
):
    monkeypatch.setattr(LocalTaylor, "jitter", lambda _, near: 1e-3 * torch.sin(1e3 * near + 1))
    x, gradient = plane(neighbours)
    local = LocalTaylor(dim_t=2, dim_y=2, published=published).eval()
    found = local.neighbours(x, everyone(3), torch.ones(1, 3, 2, dtype=torch.bool))
    difference = found.offset[..., 0, :] @ gradient  # (B, N, K, D)
    out = local.derivatives(difference, found)
    torch.testing.assert_close(out[0, 0, 0], gradient, rtol=1e-6, atol=0)
    assert (out[0, 0, 2] == 1).all()


@pytest.mark.parametrize("direction", [[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_neighbours_in_line_determine_the_slope_along_a_row_or_a_column_and_no_other(direction, dtype):
    torch.set_default_dtype(dtype)
    along = torch.tensor(direction)
    x, gradient = plane([(0.1 * along).tolist(), (-0.2 * along).tolist()])
    derivative, label, _ = raw_derivatives(LocalTaylor(dim_t=2, dim_y=2).eval(), x, x @ gradient)
    determined = (along == 1)[:, None].expand(2, 2)
    assert torch.equal(label[0, 0] == 1, determined)
    expected = torch.where(determined, gradient, 0.0)
    torch.testing.assert_close(derivative[0, 0], expected, rtol=1e-4, atol=1e-5)


def test_on_a_grid_of_pixels_every_coordinate_labelled_as_present_is_the_gradient_of_a_plane():
    side = torch.linspace(-1, 1, 8)
    grid = torch.cartesian_prod(side, side)
    x = grid[torch.argsort(torch.rand(64, 64, generator=torch.Generator().manual_seed(0)), 1)][:, :40]
    mask = torch.ones(40, 40, dtype=torch.bool).tril(-1).expand(64, -1, -1)
    gradient = torch.tensor([[1.5, 0.3], [-2.0, 0.7]])
    derivative, label, _ = raw_derivatives(LocalTaylor(dim_t=2, dim_y=2).eval(), x, x @ gradient, mask)
    present = label[:, 2:] == 1  # the first two points have no two neighbours before them
    assert 0.85 < present.double().mean() < 0.95
    assert not present.all((2, 3)).all()
    expected = torch.where(present, gradient, 0.0)
    torch.testing.assert_close(derivative[:, 2:], expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("published", [True, False])
def test_a_gradient_beyond_the_clip_is_zero_and_labelled_as_absent_by_coordinate(monkeypatch, published):
    monkeypatch.setattr(LocalTaylor, "jitter", lambda _, near: 0.0 * near)
    x, _ = plane([[0.1, 0.02], [0.1, -0.05]])
    local = LocalTaylor(dim_t=2, dim_y=2, published=published, clip=10.0).eval()
    gradient = torch.tensor([[50.0, 3.0], [-2.0, -40.0]])  # by coordinate and column
    derivative, label, _ = raw_derivatives(local, x, x @ gradient)
    assert label[0, 0].tolist() == [[0.0, 1.0], [1.0, 0.0]]
    torch.testing.assert_close(derivative[0, 0], torch.tensor([[0.0, 3.0], [-2.0, 0.0]]), rtol=0.05, atol=0)


def test_coinciding_points_in_two_dimensions_have_a_finite_gradient():
    x, y = torch.zeros(1, 3, 2), torch.randn(1, 3, 1, generator=torch.Generator().manual_seed(0))
    for published in (True, False):
        derivative, label, _ = raw_derivatives(LocalTaylor(dim_t=2, published=published).eval(), x, y)
        assert torch.isfinite(derivative).all()
        assert published or (label == 0).all()


def test_the_published_code_moves_neighbours_in_two_dimensions_and_only_there():
    torch.manual_seed(0)
    x, seen = torch.rand(2, 40, 2), torch.ones(2, 40, 1, dtype=torch.bool)
    exact = LocalTaylor(dim_t=2).neighbours(x, everyone(40, 2), seen)
    moved = LocalTaylor(dim_t=2, published=True).neighbours(x, everyone(40, 2), seen)
    noise = moved.offset - exact.offset
    assert noise.std().item() == pytest.approx(0.01, rel=0.2)
    again = LocalTaylor(published=True).neighbours(x[..., :1], everyone(40, 2), seen)
    near = x[..., :1].gather(1, again.index[..., 0])
    assert torch.equal(again.offset[:, :, 0, 0], x[..., :1] - near)


@pytest.mark.parametrize("dim_t", [0, 3])
def test_times_with_other_numbers_of_coordinates_are_refused(dim_t):
    with pytest.raises(ValueError, match=f"dim_t={dim_t}"):
        LocalTaylor(dim_t)


def test_slopes_need_at_least_one_neighbour():
    with pytest.raises(ValueError, match="n_derivative_neighbours=0"):
        LocalTaylor(n_derivative_neighbours=0)


# ---- columns that miss different points ---------------------------------------------------------------


@pytest.mark.parametrize("dim_t", [1, 2])
def test_each_column_finds_its_neighbours_as_if_it_were_alone(make_window, dim_t):
    w = make_window(dim_y=3, dim_t=dim_t, missing="entries", missing_targets="entries")
    mask = w.attention_mask()
    together = LocalTaylor(dim_t, 3, n_derivative_neighbours=2).eval()
    alone = LocalTaylor(dim_t, 1, n_derivative_neighbours=2).eval()
    found = together.neighbours(w.times, mask, w.observed)
    for column in range(3):
        part = slice(column, column + 1)
        own_mask = mask & w.observed[:, None, :, column]
        own = alone.neighbours(w.times, own_mask, w.observed[..., part])
        assert torch.equal(found.index[..., part], own.index)
        assert torch.equal(found.valid[..., part], own.valid)
        assert torch.equal(found.offset[..., part, :], own.offset)


# ---- normalisation ------------------------------------------------------------------------------------


def batch(seed=0):
    return 3 + 5 * torch.randn(4, 6, 1, 2, generator=torch.Generator().manual_seed(seed))


def test_running_statistics_are_those_of_the_data_after_one_step_and_its_average_after_two():
    norm, first, second = DerivativeNorm(2), batch(0), batch(1)
    norm(first, None)
    points = first.flatten(0, 2)
    torch.testing.assert_close(norm.mean, points.mean(0))
    torch.testing.assert_close(norm.variance, points.var(0, unbiased=False))
    norm(second, None)
    torch.testing.assert_close(norm.mean, (points.mean(0) + second.flatten(0, 2).mean(0)) / 2)


def test_old_data_fade_from_running_statistics_with_momentum_99_percent():
    norm = DerivativeNorm(2)
    norm.updates.fill_(10_000)
    norm(batch(), None)
    points = batch().flatten(0, 2)
    torch.testing.assert_close(norm.mean, 0.01 * points.mean(0))
    torch.testing.assert_close(norm.variance, 0.99 + 0.01 * points.var(0, unbiased=False))


def test_batch_statistics_normalise_the_batch_and_move_the_running_ones_slowly():
    norm, points = DerivativeNorm(2, use_batch=True), batch().flatten(0, 2)
    out = norm(batch(), None).flatten(0, 2)
    variance = points.var(0, unbiased=False)
    torch.testing.assert_close(out.mean(0), torch.zeros(2), rtol=0, atol=1e-12)
    torch.testing.assert_close(out.var(0, unbiased=False), variance / (variance + 1e-3))
    torch.testing.assert_close(norm.mean, 0.01 * points.mean(0))
    torch.testing.assert_close(norm.variance, 0.99 + 0.01 * variance)


@pytest.mark.parametrize("use_batch", [True, False])
def test_evaluation_uses_the_running_statistics_and_changes_nothing(use_batch):
    norm = DerivativeNorm(2, use_batch)
    with torch.no_grad():
        norm.mean.copy_(torch.tensor([1.0, -2.0]))
        norm.variance.copy_(torch.tensor([4.0, 9.0]))
        norm.gain.copy_(torch.tensor([2.0, 0.5]))
        norm.offset.copy_(torch.tensor([0.1, 0.2]))
    norm.eval()
    before = {name: value.clone() for name, value in norm.state_dict().items()}
    out, d = norm(batch(), None), batch()
    for c, (mean, variance, gain, offset) in enumerate([(1, 4, 2, 0.1), (-2, 9, 0.5, 0.2)]):
        expected = gain * (d[..., c] - mean) / math.sqrt(variance + 1e-3) + offset
        torch.testing.assert_close(out[..., c], expected)
    for name, value in norm.state_dict().items():
        assert torch.equal(value, before[name])


@pytest.mark.parametrize("use_batch", [True, False])
def test_points_that_were_not_observed_do_not_count_in_the_statistics(use_batch):
    visible = torch.rand(4, 6, generator=torch.Generator().manual_seed(2)) < 0.5
    norm, d = DerivativeNorm(2, use_batch), batch()
    norm.eval()
    polluted = d.clone()
    polluted[~visible] = 1e9
    norm.train()
    out = norm(polluted, visible[..., None].expand(-1, -1, 2))
    points = d[visible][:, 0]
    weight = 0.01 if use_batch else 1.0
    torch.testing.assert_close(norm.mean, weight * points.mean(0))
    torch.testing.assert_close(norm.variance, 1 - weight + weight * points.var(0, unbiased=False))
    assert out[visible].abs().max() < 10


@pytest.mark.parametrize("use_batch", [True, False])
def test_a_batch_in_which_nothing_was_observed_leaves_the_statistics_alone(use_batch):
    norm = DerivativeNorm(2, use_batch)
    norm(batch(), None)
    before = {name: norm.state_dict()[name].clone() for name in ("mean", "variance")}
    out = norm(torch.zeros(4, 6, 1, 2), torch.zeros(4, 6, 2, dtype=torch.bool))
    assert torch.isfinite(out).all()
    for name, value in before.items():
        assert torch.equal(norm.state_dict()[name], value)
