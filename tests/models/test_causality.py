"""No target's distribution depends on its own value or on any later one."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

pytestmark = pytest.mark.usefixtures("float64")


def gradients(net, w, numbers):
    """Gradients of every target's parameters in all values, (T, B, N, D)."""
    y = w.y.clone().requires_grad_()
    out = numbers(net(replace(w, y=y)))
    # Random factors, so that gradients of several parameters cannot cancel.
    factors = torch.randn(out.shape, generator=torch.Generator().manual_seed(0))
    return torch.stack(
        [
            torch.autograd.grad((out * factors)[:, i].sum(), y, retain_graph=True)[0]
            for i in range(w.n_targets)
        ]
    )


@pytest.mark.parametrize("missing", ["none", "entries", "a column", "the context"])
def test_gradients_in_a_targets_own_and_later_values_are_exactly_zero(any_case, missing, numbers):
    if missing in ("none", "entries"):
        w = any_case.window(missing=missing, missing_targets=missing)
    else:  # the first target has no neighbour that it could be predicted from
        w = any_case.window()
        observed = w.observed.clone()
        observed[:, : w.n_context, : 1 if missing == "a column" else None] = False
        w = replace(w, observed=observed)
    gradient = gradients(any_case.net(), w, numbers)
    for i in range(w.n_targets):
        assert (gradient[i, :, w.n_context + i :] == 0).all()


def test_training_with_running_statistics_lets_no_gradient_through_either(paper_case, numbers):
    w = paper_case.window(missing="entries", missing_targets="entries")
    gradient = gradients(paper_case.net().train(), w, numbers)
    for i in range(w.n_targets):
        assert (gradient[i, :, w.n_context + i :] == 0).all()


@pytest.mark.parametrize("missing", ["none", "entries"])
def test_every_observed_earlier_value_matters_and_no_other(stepwise_case, missing, numbers):
    w = stepwise_case.window(missing=missing, missing_targets=missing)
    gradient = gradients(stepwise_case.net(), w, numbers)
    for i in range(w.n_targets):
        earlier = gradient[i, :, : w.n_context + i]
        seen = w.observed[:, : w.n_context + i]
        assert (earlier[seen] != 0).all()
        assert (earlier[~seen] == 0).all()


def with_other_values_from(w, first, factor=1e3):
    """Change the values of targets number ``first`` and later."""
    y = w.y.clone()
    y[:, w.n_context + first :] = factor * (y[:, w.n_context + first :] + 1)
    return replace(w, y=y)


@pytest.mark.parametrize("first", [0, 3])
def test_other_later_values_leave_distributions_as_they_were(any_case, first, numbers):
    w, net = any_case.window(), any_case.net()
    before = numbers(net(w))[:, : first + 1]
    assert torch.equal(numbers(net(with_other_values_from(w, first)))[:, : first + 1], before)


@pytest.mark.parametrize("first", [0, 2, 4])
def test_other_later_values_leave_distributions_in_training_as_they_were(paper_case, first, numbers):
    w, other = paper_case.window(), None
    other = with_other_values_from(w, first)
    before, after = (numbers(paper_case.net(dropout=0.0).train()(v))[:, : first + 1] for v in (w, other))
    assert torch.equal(after, before)


def test_batch_statistics_of_the_published_code_leak_in_training_only(build_case, numbers):
    case = build_case("code")
    w = case.window()
    other = with_other_values_from(w, 4, factor=1.0)  # beyond the clip, it would be as if it were absent
    assert torch.equal(numbers(case.net()(other)), numbers(case.net()(w)))
    training = [numbers(case.net(dropout=0.0).train()(v)) for v in (w, other)]
    assert not torch.equal(*training)


def test_later_times_and_covariates_change_nothing_before_them(stepwise_case, numbers):
    w, net = (
        stepwise_case.window(dim_covariates=stepwise_case.options.get("dim_covariates", 0)),
        stepwise_case.net(),
    )
    t = w.t.clone()
    t[:, -2:] += 0.7
    covariates = None if w.covariates is None else w.covariates.clone()
    if covariates is not None:
        covariates[:, -2:] += 1
    changed = numbers(net(replace(w, t=t, covariates=covariates)))
    before = numbers(net(w))
    assert torch.equal(changed[:, :-2], before[:, :-2])
    assert not torch.equal(changed[:, -2:], before[:, -2:])
