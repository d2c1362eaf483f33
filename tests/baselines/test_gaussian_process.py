"""The Gaussian process against textbook formulas, and the network around it."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
import torch

from taylorformer_forecast.baselines.gaussian_process import JITTER, GaussianProcessBaseline
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.models.taylorformer import Taylorformer

pytestmark = pytest.mark.usefixtures("float64")


def window(dim_covariates=2, seed=0, n=12):
    generator = torch.Generator().manual_seed(seed)
    t, y = torch.rand(3, n, generator=generator) - 0.5, torch.randn(3, n, 1, generator=generator)
    y[1, [2, 5]] = float("nan")
    covariates = torch.randn(3, n, dim_covariates, generator=generator)
    return Window(t, y, covariates=covariates, n_context=8)


def covariance(process, w):
    noise = (process.log_noise.exp() + JITTER) * torch.eye(w.y.shape[1])
    return (process.covariance(w.t, w.covariates) + noise).detach()


def test_means_and_deviations_are_the_conditional_ones():
    process, w = GaussianProcessBaseline(2), window()
    mean, deviation = process(w)
    for row, full in enumerate(covariance(process, w)):
        for i in range(12):
            seen = [j for j in range(i) if w.observed[row, j, 0]]
            weights = torch.linalg.solve(full[seen][:, seen], full[seen, i]) if seen else full[seen, i]
            torch.testing.assert_close(mean[row, i, 0], weights @ w.y[row, seen, 0])
            torch.testing.assert_close(deviation[row, i, 0] ** 2, full[i, i] - weights @ full[seen, i])


def test_the_loss_is_the_joint_density_of_what_was_observed():
    process, w = GaussianProcessBaseline(2), window()
    nats = 0.0
    for row, full in enumerate(covariance(process, w)):
        seen = w.observed[row, :, 0]
        part = scipy.stats.multivariate_normal(np.zeros(int(seen.sum())), full[seen][:, seen].numpy())
        nats -= part.logpdf(w.y[row, seen, 0].numpy())
    assert process.loss(w).item() == pytest.approx(nats / int(w.observed.sum()))


def test_covariates_that_repeat_bring_back_what_was_seen_with_them():
    t = torch.arange(40.0)[None] / 40 - 0.5
    phase = 2 * torch.pi * torch.arange(40.0)[None, :, None] / 8
    covariates = torch.cat([phase.sin(), phase.cos()], -1)
    order = torch.cat([torch.arange(16), torch.arange(24, 40), torch.arange(16, 24)])
    y = 2 * phase.sin()
    with_season, without = GaussianProcessBaseline(2), GaussianProcessBaseline()
    errors = []
    for process, c in ((with_season, covariates), (without, None)):
        w = Window(t, y, covariates=c, n_context=32).reorder(order[None])
        drawn = process.encode(w, 1)
        errors.append((drawn.context[0, :, 0] - w.y[0, 32:, 0]).abs().mean().item())
    assert errors[0] < 0.3 * errors[1]


def test_an_untrained_network_is_its_gaussian_process():
    net = Taylorformer(
        d_model=8, n_heads=2, dim_covariates=2, baseline=GaussianProcessBaseline(2), distribution="normal"
    ).eval()
    w = window()
    found, (mean, deviation) = net(w), net.baseline(w)
    torch.testing.assert_close(found.mean, mean[:, 8:])
    torch.testing.assert_close(found.stddev, deviation[:, 8:] * 1.001)  # the floor of scales


def test_weights_and_inflation_act_on_means_and_deviations():
    net = Taylorformer(d_model=8, n_heads=2, dim_covariates=2, baseline=GaussianProcessBaseline(2)).eval()
    torch.nn.init.normal_(net.streams.to_params.weight)
    w = window()
    own = net(w)
    mean, deviation = (part[:, 8:] for part in net.baseline(w))
    net.calibration.set(weight=1.0, mean_weight=0.5, inflation=2.0)
    torch.testing.assert_close(net(w).mean, 0.5 * (mean + own.mean))
    torch.testing.assert_close(net(w).stddev, 2 * own.stddev)
    net.calibration.set(weight=0.0, mean_weight=1.0, inflation=1.0)
    torch.testing.assert_close(net(w).mean, mean)
    torch.testing.assert_close(net(w).stddev, 1.001 * deviation)


def test_the_published_network_takes_no_gaussian_process():
    with pytest.raises(ValueError, match="takes no other baseline"):
        Taylorformer(baseline=GaussianProcessBaseline(), preset="code")


def test_values_that_are_observed_step_by_step_give_the_teacher_forced_means_and_deviations():
    process, w = GaussianProcessBaseline(2), window()
    mean, deviation = process.teacher_forced(w)
    state = process.encode(w.to_draw(), 2)
    for step in range(w.n_targets):
        loc, scale = process.at(state, step)
        torch.testing.assert_close(loc, mean[:, None, step].expand(-1, 2, -1))
        torch.testing.assert_close(scale, deviation[:, None, step])
        process.observe(state, step, w.targets[0][:, None, step].expand(-1, 2, -1))
