"""Points that were not observed, padding, and the order of the context change nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from taylorformer_forecast.core.protocol import training_loss
from taylorformer_forecast.core.sampling import sample_paths
from taylorformer_forecast.core.window import Window

pytestmark = pytest.mark.usefixtures("float64")

NAN = float("nan")


def close(got, expected):
    torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-12)


def take(w, index, n_context):
    """Pick points of every window."""
    parts = (w.t, w.y, w.observed, w.covariates, w.series)
    return Window(*(None if p is None else p[:, index] for p in parts), n_context=n_context)


def without(w, points):
    """Mark the same points of every window as not observed."""
    observed = w.observed.clone()
    observed[:, points] = False
    return replace(w, observed=observed)


def test_times_and_covariates_of_unobserved_points_do_not_matter(stepwise_case, numbers):
    w, net = stepwise_case.window(missing="rows", missing_targets="rows"), stepwise_case.net()
    gone = ~w.visible
    g = torch.Generator().manual_seed(3)
    noise = torch.randn(w.times.shape, generator=g).view(w.t.shape)
    t = torch.where(gone if w.t.ndim == 2 else gone[..., None], w.t + noise, w.t)
    covariates = w.covariates
    if covariates is not None:
        covariates = torch.where(gone[..., None], torch.randn(covariates.shape, generator=g), covariates)
    changed = numbers(net(replace(w, t=t, covariates=covariates)))
    seen = w.visible[:, w.n_context :]
    assert seen.any()
    close(changed[seen], numbers(net(w))[seen])


@pytest.mark.parametrize("times", ["irregular", "regular"])
def test_unobserved_points_may_as_well_be_deleted(full_case, times, numbers):
    w, net = without(full_case.window(times=times), [1, 4, 5, 8, 10]), full_case.net()
    kept = [i for i in range(12) if w.visible[0, i]]
    shorter = take(w, kept, n_context=4)
    remaining = [i - w.n_context for i in kept if i >= w.n_context]
    close(numbers(net(w))[:, remaining], numbers(net(shorter)))


def test_training_does_not_see_unobserved_points_either(full_case):
    w = without(full_case.window(), [1, 4, 5, 8, 10])
    shorter = take(w, [i for i in range(12) if w.visible[0, i]], n_context=4)
    losses, nets = [], []
    for window in (w, shorter):
        net = full_case.net(dropout=0.0).train()
        losses.append(training_loss(net(window), window))
        losses[-1].backward()
        nets.append(net)
    close(*losses)
    for (name, first), second in zip(nets[0].named_parameters(), nets[1].parameters(), strict=True):
        torch.testing.assert_close(first.grad, second.grad, rtol=1e-9, atol=1e-10, msg=name)
    for first, second in zip(nets[0].buffers(), nets[1].buffers(), strict=True):
        close(first, second)


@pytest.mark.parametrize("side", ["left", "right"])
def test_contexts_of_different_lengths_can_be_padded_to_one(full_case, side, numbers):
    w, net = full_case.window(), full_case.net()
    g = torch.Generator().manual_seed(4)
    gone = torch.zeros(3, 12, dtype=torch.bool)
    for b in range(3):  # one point less in each window, at its beginning or at the end of its context
        gone[b, slice(0, b + 1) if side == "left" else slice(6 - b, 7)] = True
    padded = w.map(lambda v: v.clone())
    for value in (padded.y, padded.t, padded.covariates):
        if value is not None:
            value[gone] = torch.randn(value[gone].shape, generator=g)
    out = numbers(net(replace(padded, observed=w.observed & ~gone[..., None])))
    for b in range(3):
        kept = (~gone[b]).nonzero()[:, 0]
        close(out[b], numbers(net(take(w.rows(slice(b, b + 1)), kept, n_context=6 - b)))[0])


@pytest.mark.parametrize("times", ["irregular", "regular"])
def test_a_window_is_predicted_alike_alone_and_in_any_batch(any_case, times, numbers):
    w, net = any_case.window(times=times), any_case.net()
    observed = w.observed.clone()  # the first window is complete, the second lacks points, the third entries
    observed[1] = any_case.window(missing="rows").observed[1]
    observed[2] = any_case.window(missing="entries").observed[2]
    w = replace(w, observed=observed)
    together = numbers(net(w))
    for b in range(3):
        close(numbers(net(w.rows(slice(b, b + 1))))[0], together[b])


def shuffled_context(w, seed=0):
    order = torch.randperm(w.n_context, generator=torch.Generator().manual_seed(seed)).tolist()
    return take(w, order + list(range(w.n_context, w.y.shape[1])), w.n_context)


@pytest.mark.parametrize("times", ["irregular", "regular"])
def test_the_order_of_the_context_does_not_matter(full_paper_case, missing, times, numbers):
    # Every window has gaps of its own, and on the regular grid most neighbours tie.
    w, net = full_paper_case.window(times=times, missing=missing, n_context=9), full_paper_case.net()
    close(numbers(net(shuffled_context(w))), numbers(net(w)))


@pytest.mark.parametrize("name", ["code", "code-two-slopes", "code-columns", "code-2d"])
def test_the_order_of_the_context_does_not_matter_to_the_published_code_without_ties(
    build_case, name, numbers
):
    case = build_case(name)
    w, net = case.window(n_context=9), case.net()
    close(numbers(net(shuffled_context(w))), numbers(net(w)))


# ---- nothing observed ---------------------------------------------------------------------------------


def test_missing_values_reach_neither_outputs_nor_gradients(any_case, missing, trained):
    torch.set_default_dtype(torch.float32)
    w, net = any_case.window(missing=missing, missing_targets="entries"), any_case.net()
    y = w.y.masked_fill(~w.observed, NAN).requires_grad_()
    w = replace(w, y=y, observed=~torch.isnan(y))
    loss = training_loss(net(w), w)
    assert torch.isfinite(loss)
    loss.backward()
    assert torch.isfinite(y.grad).all()
    assert (y.grad[torch.isnan(y)] == 0).all()
    for name, parameter in trained(net):
        assert torch.isfinite(parameter.grad).all(), name


def test_unobserved_targets_do_not_count_in_the_loss(any_case):
    w, net = any_case.window(), any_case.net()
    partly = without(w, [9, 11])
    distribution, y = net(partly), w.targets[0]
    score = distribution.score(y) if hasattr(distribution, "score") else -distribution.log_prob(y)
    close(training_loss(net(partly), partly), score[:, [0, 1, 3]].mean())


@pytest.mark.parametrize(
    ("what", "loss_size"), [("the context", 1e6), ("a column of the context", 1e6), ("everything", 1.0)]
)
def test_windows_without_observed_context_have_finite_predictions_and_gradients(
    trained, any_case, what, loss_size, numbers
):
    torch.set_default_dtype(torch.float32)
    w, net = any_case.window(), any_case.net(dropout=0.0)
    observed = w.observed.clone()
    column = slice(0, 1) if what == "a column of the context" else slice(None)
    observed[0, : None if what == "everything" else w.n_context, column] = False
    w = replace(w, observed=observed)
    assert torch.isfinite(numbers(net(w))).all()
    (loss_size * training_loss(net(w), w)).backward()
    for name, parameter in trained(net):
        assert torch.isfinite(parameter.grad).all(), name
    assert torch.isfinite(sample_paths(net, w, 3, torch.Generator().manual_seed(0)).paths).all()


@pytest.mark.parametrize("n_context", [1, 2])
def test_the_shortest_contexts_are_enough(stepwise_case, n_context, numbers):
    w, net = stepwise_case.window(n_context=n_context), stepwise_case.net()
    out = numbers(net(w))
    assert out.shape[1] == w.n_targets
    assert torch.isfinite(out).all()
    assert torch.isfinite(sample_paths(net, w, 3, torch.Generator().manual_seed(0)).paths).all()


def test_a_zero_that_was_observed_is_not_taken_for_a_missing_value(build_case, numbers):
    case = build_case("paper-three-columns")
    # A single point, so that differences and derivatives say nothing about it.
    w, net = case.window(n_context=1), case.net(neighbour_derivative=False)
    y, observed = w.y.clone(), w.observed.clone()
    y[:, 0, 0] = 0.0
    observed[:, 0, 0] = False
    known, unknown = (
        numbers(net(replace(w, y=y)))[:, 0],
        numbers(net(replace(w, y=y, observed=observed)))[:, 0],
    )
    assert ((known - unknown).abs() > 1e-6).all()


def test_an_entry_that_was_not_observed_shows_no_difference_and_no_derivative(build_case):
    case = build_case("paper-three-columns")
    w, net = case.window(missing="entries", missing_targets="entries"), case.net()
    f = net.streams.tokens(w, w.attention_mask())
    gone = ~w.observed
    assert (gone & w.visible[..., None]).any()  # other columns of the point were observed
    assert (f.difference.transpose(2, 3)[gone] == 0).all()
    derivative, _, label = f.derivatives[:, :, :, 0].unbind(2)
    assert (derivative[gone] == 0).all()
    assert (label[gone] == 0).all()


def test_statistics_of_derivatives_are_those_of_the_observed_entries(build_case):
    case = build_case("paper-three-columns")
    w, net = case.window(missing="entries", missing_targets="entries"), case.net(dropout=0.0).train()
    norm = net.streams.tokens.local.norm
    norm.updates.zero_()
    f = net.streams.tokens(w, w.attention_mask())
    for column in range(3):
        values = f.derivatives[:, :, 0, 0, column][w.observed[..., column]]
        close(norm.mean[column], values.mean())
        close(norm.variance[column], values.var(unbiased=False))
