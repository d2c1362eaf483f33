"""Artificial gaps: how many points are hidden, where, and that everything moves together."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
import torch

from taylorformer_forecast.core.window import Window
from taylorformer_forecast.engine.gaps import GapBatches, gap_mask, hide_gaps, scale_gaps
from taylorformer_forecast.engine.windows import Series, WindowMaker


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(("n_points", "n_hidden"), [(3, 1), (12, 4), (64, 20)])
def test_exactly_as_many_points_are_hidden_as_were_asked_for(n_points, n_hidden):
    masks = [gap_mask(n_points, n_hidden, generator(seed)) for seed in range(50)]
    assert {int(mask.sum()) for mask in masks} == {n_hidden}


def test_gaps_have_all_lengths_and_lie_everywhere():
    masks = torch.stack([gap_mask(60, 20, generator(seed)) for seed in range(400)])
    assert (masks.float().mean(0) > 0.1).all()  # the ends too
    lengths = set()
    for mask in masks.int():
        edges = torch.nn.functional.pad(mask, (1, 1)).diff().nonzero().flatten()
        lengths |= set((edges[1::2] - edges[::2]).tolist())
    assert lengths >= set(range(1, 21))


def test_times_values_covariates_and_masks_move_together():
    t = torch.arange(30.0).repeat(5, 1)
    y = t[..., None].clone()
    y[:, 7] = float("nan")
    hidden = hide_gaps(Window(t, y, covariates=2 * t[..., None], n_context=30), 8, generator())
    assert (hidden.n_context, hidden.n_targets) == (22, 8)
    assert (hidden.covariates[..., 0] == 2 * hidden.t).all()
    assert (hidden.observed[..., 0] == (hidden.t != 7)).all()
    assert (hidden.y[..., 0] == torch.where(hidden.t == 7, 0.0, hidden.t)).all()
    assert (hidden.t[:, :22].diff() > 0).all()  # the context stays in order
    assert not (hidden.t[:, 22:].diff() > 0).all(1).any()  # the targets do not


def test_times_are_measured_from_the_middle_and_values_by_the_context():
    t = torch.tensor([[0.0, 1.0, 9.0, 10.0, 4.0]])
    scaled, scale = scale_gaps(
        Window(t, torch.tensor([[[1.0], [2], [3], [6], [100]]]), n_context=4), 10.0, 0.0
    )
    assert torch.allclose(scaled.t, torch.tensor([[-0.5, -0.4, 0.4, 0.5, -0.1]]))
    assert scale.loc.item() == 3.0
    assert scaled.y[0, :4].mean().abs() < 1e-6


@pytest.mark.parametrize("lengths", [(40, 25), (5, 3)], ids=["long", "shorter than a window"])
def test_batches_are_reproducible_and_reach_every_point(lengths):
    series = [
        Series(np.arange(float(n)), np.arange(float(n))[:, None] + 100 * k) for k, n in enumerate(lengths)
    ]
    maker = WindowMaker(series, 11, 1, 12.0)
    batches = GapBatches(maker, 4, 16, seed=3)
    first, second = (list(islice(batches, 20)) for _ in range(2))
    assert all((a.y == b.y).all() and (a.t == b.t).all() for a, b in zip(first, second, strict=True))
    assert first[0].y.shape == (16, 12, 1)
    rows = batches.starts[:, 1]
    assert set(rows.tolist()) <= set(range(sum(lengths)))
    assert {lengths[0] - 1, sum(lengths) - 1} <= set(rows.tolist())
