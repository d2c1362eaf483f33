"""The window: validation, views of it, the mask, shuffled targets."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from taylorformer_forecast.core.window import Window, holds_everywhere, join_columns, shuffle_targets

pytestmark = pytest.mark.usefixtures("float64")

NAN = float("nan")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"t": torch.zeros(2, 4)}, r"\(2, 4\) and \(2, 5, 1\)"),
        ({"t": torch.zeros(5)}, r"t of shape \(B, N\) or \(B, N, X\).*\(5,\)"),
        ({"y": torch.zeros(2, 5)}, r"y of shape \(B, N, D\).*\(2, 5\)"),
        ({"n_context": 6}, "n_context=6 but the window has 5 points"),
        ({"n_context": -1}, "n_context=-1"),
        (
            {"observed": torch.ones(2, 5, 2, dtype=torch.bool)},
            r"observed has shape \(2, 5, 2\), y \(2, 5, 1\)",
        ),
        ({"covariates": torch.zeros(2, 4, 3)}, r"covariates have shape \(2, 4, 3\), y has \(2, 5, 1\)"),
        ({"series": torch.zeros(2, 4, dtype=torch.long)}, r"series has shape \(2, 4\), y \(2, 5, 1\)"),
    ],
)
@pytest.mark.usefixtures("no_shape_checks")
def test_a_window_that_does_not_fit_together_says_what_it_got(change, message):
    fitting = {"t": torch.zeros(2, 5), "y": torch.zeros(2, 5, 1), "n_context": 3}
    Window(**fitting)
    with pytest.raises(ValueError, match=message):
        Window(**{**fitting, **change})


def test_nan_means_not_observed_and_leaves_no_trace():
    y = torch.tensor([[[1.0, NAN], [NAN, NAN], [3.0, 4.0]]])
    w = Window(torch.zeros(1, 3), y, n_context=2)
    assert w.observed.tolist() == [[[True, False], [False, False], [True, True]]]
    assert w.visible.tolist() == [[True, False, True]]
    assert w.y.tolist() == [[[1.0, 0.0], [0.0, 0.0], [3.0, 4.0]]]
    values, observed = w.targets
    assert values.tolist() == [[[3.0, 4.0]]]
    assert observed.all()


def test_values_marked_as_not_observed_are_erased_whatever_they_were():
    y = torch.tensor([[[5.0], [float("inf")], [NAN]]])
    observed = torch.tensor([[[True], [False], [False]]])
    assert Window(torch.zeros(1, 3), y, observed, n_context=2).y.flatten().tolist() == [5.0, 0.0, 0.0]


def test_times_always_have_a_coordinate_axis(make_window):
    flat, plane = make_window(dim_t=1), make_window(dim_t=2)
    assert flat.t.shape == (3, 12)
    assert torch.equal(flat.times[..., 0], flat.t)
    assert torch.equal(plane.times, plane.t)


@pytest.mark.parametrize("index", [slice(1, 3), torch.tensor([2, 0, 2])])
def test_rows_picks_the_same_windows_of_every_tensor(make_window, index):
    w = make_window(n_windows=4, dim_covariates=2, missing="rows")
    picked = w.rows(index)
    for name in ("t", "y", "observed", "covariates"):
        assert torch.equal(getattr(picked, name), getattr(w, name)[index])
    assert picked.n_context == w.n_context


def test_points_cuts_every_tensor_and_leaves_the_length_of_the_context(make_window):
    w = make_window(dim_y=2, dim_covariates=2, missing="rows")
    cut = w.points(slice(2, 10))
    for name in ("t", "y", "observed", "covariates"):
        assert torch.equal(getattr(cut, name), getattr(w, name)[:, 2:10])
    assert (cut.n_context, cut.n_targets) == (w.n_context, 1)


@pytest.mark.parametrize("dim_covariates", [0, 2])
def test_map_reaches_every_tensor_once(make_window, dim_covariates):
    w = make_window(dim_covariates=dim_covariates)
    seen = []
    mapped = w.map(lambda value: seen.append(value) or value.flip(0))
    assert len(seen) == (4 if dim_covariates else 3)
    assert torch.equal(mapped.y, w.y.flip(0))
    assert (mapped.covariates is None) == (dim_covariates == 0)


def test_to_moves_every_tensor(make_window):
    moved = make_window(dim_covariates=1).to("meta")
    assert {value.device.type for value in (moved.t, moved.y, moved.observed, moved.covariates)} == {"meta"}


def test_columns_become_series_of_one_set_of_points(make_window):
    w = make_window(dim_y=2, dim_covariates=3, missing="entries", missing_targets="entries")
    points = join_columns(w)
    assert (points.n_context, points.n_targets) == (2 * w.n_context, 2 * w.n_targets)
    for i in range(12):
        for column in range(2):
            at = 2 * i + column
            assert (points.series[:, at] == column).all()
            assert torch.equal(points.t[:, at], w.t[:, i])
            assert torch.equal(points.y[:, at, 0], w.y[:, i, column])
            assert torch.equal(points.observed[:, at, 0], w.observed[:, i, column])
            assert torch.equal(points.covariates[:, at], w.covariates[:, i])


def test_the_series_of_a_point_move_with_it(make_window):
    w = join_columns(make_window(dim_y=3))
    assert torch.equal(w.points(slice(4, 30)).series, w.series[:, 4:30])
    shuffled = shuffle_targets(w, generator=generator())
    found = (shuffled.y[:, :, None, 0] == w.y[:, None, :, 0]).int().argmax(-1)
    assert torch.equal(shuffled.series, w.series.gather(1, found))


@pytest.mark.parametrize("n_context", [1, 4, 7])
@pytest.mark.parametrize("missing", ["none", "rows", "entries"])
def test_the_mask_follows_the_rule_point_by_point(make_window, n_context, missing):
    w = make_window(n_context=n_context, n_targets=4, dim_y=2, missing=missing, missing_targets=missing)
    mask = w.attention_mask().expand(3, -1, -1)
    for b in range(3):
        for i in range(n_context + 4):
            for j in range(n_context + 4):
                in_reach = j < n_context if i < n_context else j < i
                assert mask[b, i, j] == (in_reach and bool(w.observed[b, j].any()))


def test_the_mask_is_stored_once_where_all_windows_share_it(make_window):
    assert make_window().attention_mask().shape == (1, 12, 12)
    assert make_window(missing="rows").attention_mask().shape == (3, 12, 12)


# ---- shuffled targets ---------------------------------------------------------------------------------


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("n_permutations", [1, 3])
def test_shuffling_moves_everything_about_a_target_together(make_window, n_permutations):
    w = make_window(n_targets=8, dim_y=2, dim_covariates=1, missing="rows", missing_targets="entries")
    s = shuffle_targets(w, n_permutations, generator())
    assert s.y.shape == (3 * n_permutations, 15, 2)
    orders = set()
    for row in range(3 * n_permutations):
        b = row % 3
        for name in ("t", "y", "observed", "covariates"):
            assert torch.equal(getattr(s, name)[row, :7], getattr(w, name)[b, :7])
        # Times are distinct, so they tell where each target went.
        order = [w.t[b].tolist().index(value) for value in s.t[row, 7:].tolist()]
        assert sorted(order) == list(range(7, 15))
        for name in ("y", "observed", "covariates"):
            assert torch.equal(getattr(s, name)[row, 7:], getattr(w, name)[b, order])
        orders.add(tuple(order))
    assert len(orders) == 3 * n_permutations


def test_shuffling_handles_times_with_two_coordinates(make_window):
    w = make_window(dim_t=2)
    s = shuffle_targets(w, generator=generator())
    for b in range(3):
        order = [w.t[b].tolist().index(point) for point in s.t[b].tolist()]
        assert torch.equal(s.y[b], w.y[b, order])


def test_shuffling_repeats_with_its_generator_and_leaves_the_global_one_alone(make_window):
    w, before = make_window(), torch.get_rng_state()
    first, second = shuffle_targets(w, 2, generator(7)), shuffle_targets(w, 2, generator(7))
    assert torch.equal(first.t, second.t)
    assert not torch.equal(first.t, shuffle_targets(w, 2, generator(8)).t)
    assert torch.equal(torch.get_rng_state(), before)


def test_every_order_of_the_targets_is_equally_likely():
    w = Window(torch.arange(4.0)[None], torch.zeros(1, 4, 1), n_context=1)
    orders = shuffle_targets(w, 6000, generator()).t[:, 1:]
    counts = torch.unique(orders, dim=0, return_counts=True)[1]
    assert counts.shape == (6,)
    assert (counts - 1000).abs().max() < 5 * 1000**0.5


def test_a_mask_is_not_read_where_there_are_no_values():
    mask = torch.ones(2, 3, dtype=torch.bool)
    assert holds_everywhere(mask)
    assert holds_everywhere(mask, wait=True)
    assert not holds_everywhere(mask & torch.tensor([True, False, True]))
    assert not holds_everywhere(mask.to("meta"))
    assert not holds_everywhere(mask.to("meta"), wait=True)


def test_copies_to_a_cuda_device_start_from_page_locked_memory_and_do_not_block(make_window, monkeypatch):
    w, pinned, copied = make_window(dim_covariates=1), [], []
    w = replace(w, t=w.t[:1].expand(3, -1))
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: pinned.append(self) or self)
    monkeypatch.setattr(
        torch.Tensor, "to", lambda self, *args, **kwargs: copied.append((args, kwargs)) or self
    )
    w.to("cuda:0")
    assert len(pinned) == len(copied) == 4  # times, values, what was observed, covariates
    assert all(value.is_contiguous() for value in pinned)  # values that stand for several cannot be locked
    assert all(call == (("cuda:0",), {"non_blocking": True}) for call in copied)
    w.to("cpu")
    assert len(pinned) == 4
