"""Kernels in networks: cached steps equal teacher-forced rows, or the kernel is refused."""

from __future__ import annotations

import pytest
import torch
from outside import Sharp, WholeOnly

from taylorformer_forecast.core.attention.kernels import Full, FunctionKernel, Kernel
from taylorformer_forecast.core.attention.local import Local
from taylorformer_forecast.core.attention.prob import Prob
from taylorformer_forecast.core.attention.registry import KERNELS, find_kernel, register
from taylorformer_forecast.models.contiformer import ContiFormer
from taylorformer_forecast.models.contiformer_paths import ContiFormerPaths
from taylorformer_forecast.models.lam import LAMTransformer
from taylorformer_forecast.models.taylorformer import Taylorformer
from taylorformer_forecast.models.tnp import TNPA
from taylorformer_forecast.models.unn import UNN

pytestmark = pytest.mark.usefixtures("float64")


class SharpLocal(Local):
    """Another temperature within a window."""

    def __call__(self, q, k, v, mask=None, scale=None):
        return super().__call__(q, k, v, mask, 3 * (q.shape[-1] ** -0.5 if scale is None else scale))

    def one_query(self, query, points, scale):
        return super().one_query(query, points, 3 * scale)


class Tempered(SharpLocal):
    """One that is made from something else than a window."""

    def __init__(self, points):
        super().__init__(window=2 * points)
        object.__setattr__(self, "points", points)


class Sigmoid(Kernel):
    """Another normalisation: weights do not sum to 1, and depend on the bias of the keys."""

    def __call__(self, q, k, v, mask=None, scale=None):
        weights = (q @ k.mT * scale).sigmoid()
        return (weights if mask is None else weights * mask[:, None]) @ v

    def one_query(self, query, points, scale):
        shared, own = (part.sigmoid() for part in points.scores(scale * query, key_bias=True))
        return points.weighted_sum(shared, own, shared.sum(-1, keepdim=True) + own.sum(-1, keepdim=True))


class StepOnly(Full):
    """Another temperature of one query, of which the inherited whole-sequence form knows nothing."""

    def one_query(self, query, points, scale):
        return super().one_query(query, points, 3 * scale)


def check_each_step(net, w, numbers):
    """Compare cached steps with teacher-forced rows; return the latter."""
    with torch.no_grad():
        expected, state = numbers(net(w)), net.encode(w, 1)
        for step in range(w.n_targets):
            got = numbers(net.query(state, step))[:, 0]
            torch.testing.assert_close(got, expected[:, step], rtol=1e-11, atol=1e-11)
            state = net.observe(state, step, w.y[:, None, w.n_context + step])
    return expected


def constant(q, k, v, mask=None, scale=None):
    return v.mean(2, keepdim=True).expand(-1, -1, q.shape[2], -1)


@pytest.fixture
def registered():
    """Register a kernel from outside, by one line."""
    register("outside", Sharp())


STEPWISE = {
    **{name: name for name, kernel in KERNELS.items() if kernel.has("one_query")},
    "registered": "outside",
    "window of 1": Local(window=1),
    "window of 4": Local(window=4),
    "sharp window": SharpLocal(window=4),
    "another constructor": Tempered(2),
    "sigmoid": Sigmoid(),
}
NOT_STEPWISE = {
    "prob": "prob",
    "given prob": Prob(factor=2),
    "autocorrelation": "autocorrelation",
    "function": constant,
    "whole only": WholeOnly(),
    "step only": StepOnly(),
    "base": Kernel(),
}


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("attention", STEPWISE.values(), ids=STEPWISE)
@pytest.mark.parametrize("name", ["paper", "paper-all-options", "tnp", "tnp-columns"])
@pytest.mark.parametrize("missing", ["none", "rows"])
def test_cached_equals_teacher_forced(build_case, name, attention, missing, numbers):
    case = build_case(name)
    net = case.net(attention=attention)
    w = case.window(n_context=9, n_targets=8, missing=missing)
    expected = check_each_step(net, w, numbers)
    other = case.net(attention="local" if attention == "full" else "full")
    assert not torch.allclose(numbers(other(w)), expected)  # the kernel is in use


WEIGHING = [name for name, kernel in KERNELS.items() if kernel.has("weigh") and name != "full"]


@pytest.mark.parametrize("attention", [*WEIGHING, Local(window=1), Local(window=4)], ids=str)
@pytest.mark.parametrize("name", ["unn", "unn-deep", "unn-notes"])
def test_cached_equals_teacher_forced_where_weights_come_before_values(build_case, name, attention, numbers):
    case = build_case(name)
    w = case.window(n_context=9, n_targets=8, missing="rows")
    expected = check_each_step(case.net(attention=attention), w, numbers)
    assert not torch.allclose(numbers(case.net()(w)), expected)


@pytest.mark.parametrize("attention", NOT_STEPWISE.values(), ids=NOT_STEPWISE)
@pytest.mark.parametrize("network", [Taylorformer, TNPA])
def test_a_kernel_without_a_one_query_form_is_refused_where_paths_are_drawn_point_by_point(
    network, attention
):
    message = r"does not answer one query at a time.*take 'full' or 'local'.* __call__ and one_query"
    with pytest.raises(ValueError, match=message):
        network(attention=attention)


@pytest.mark.parametrize("attention", [*KERNELS, constant, WholeOnly()])
def test_networks_that_attend_whole_sequences_take_it(make_window, attention):
    net = LAMTransformer(context_length=7, horizon=5, d_model=8, n_heads=2, attention=attention)
    assert net(make_window()).mean.shape == (3, 5, 1)


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("attention", ["prob", "autocorrelation", "outside", constant])
def test_a_kernel_without_a_table_form_is_refused_where_weights_come_before_values(attention):
    with pytest.raises(ValueError, match=r"gives no weights before the values are known.*'full' or 'local'"):
        UNN(attention=attention)


@pytest.mark.parametrize("attention", ["prob", "autocorrelation"])
@pytest.mark.parametrize("network", [ContiFormer, ContiFormerPaths])
def test_kernels_are_refused_in_continuous_time(network, attention):
    with pytest.raises(ValueError, match=f"attention='{attention}'"):
        network(attention=attention)


def test_paths_in_continuous_time_need_all_points():
    with pytest.raises(ValueError, match=r"='local': paths .* need 'full', as their incremental sums"):
        ContiFormerPaths(attention="local")


def test_forms_belong_to_the_class_that_defines_the_whole_sequence_form():
    class Renamed(Sharp):
        """Changes nothing."""

    class Narrow(Local):
        """Another window, in all forms."""

        def reach(self, n):
            return 2

    assert Renamed().has("one_query")
    assert Narrow().has("one_query")
    assert Narrow().has("weigh")
    assert not Sharp().has("weigh")
    assert not find_kernel(constant).has("one_query")


class Learnt(Full):
    """Holds what is given."""

    def __init__(self, part):
        object.__setattr__(self, "part", part)


class KernelModule(torch.nn.Linear, Kernel):
    """A module that is a kernel."""


@pytest.mark.parametrize(
    "make",
    [
        lambda: Learnt(torch.nn.Parameter(torch.ones(()))),
        lambda: Learnt(torch.nn.Sequential(torch.nn.Linear(1, 1))),
        lambda: KernelModule(1, 1),
        lambda: torch.nn.Linear(1, 1),
    ],
    ids=["weight", "module", "kernel that is a module", "function that is a module"],
)
@pytest.mark.parametrize("named", [False, True])
def test_a_kernel_that_holds_weights_is_refused(make, named):
    attention = make()
    if named:
        KERNELS["learnt"] = attention if isinstance(attention, Kernel) else FunctionKernel(attention)
        attention = "learnt"
    with pytest.raises(ValueError, match="holds weights, which would not be trained: one kernel serves all"):
        LAMTransformer(context_length=7, horizon=5, d_model=8, n_heads=2, attention=attention)


@pytest.mark.parametrize("part", [torch.ones(()), torch.nn.Softmax(-1)])
def test_a_kernel_may_hold_what_is_not_trained(part):
    assert find_kernel(Learnt(part)).part is part


def test_a_name_is_given_once():
    with pytest.raises(ValueError, match="there is a kernel named 'full' already"):
        register("full", Sharp())


@pytest.mark.parametrize("window", [1, 3, 40])
@pytest.mark.parametrize("null", [True, False])
def test_a_local_table_is_full_attention_under_the_mask_of_the_window(make_window, window, null):
    """Weights of the smoother: zero beyond the window, renormalised within; a learnt key is always seen."""
    torch.manual_seed(0)
    options = {"n_series": 1, "d_model": 8, "n_heads": 2, "n_layers": 1, "null": null}
    local, full = UNN(**options, attention=Local(window=window)), UNN(**options)
    local.load_state_dict(full.state_dict())
    w = make_window(n_context=6, n_targets=6)
    weights, expected = (net.smoother(net.points(w))[0] for net in (local, full))
    back = torch.arange(6, 12)[:, None] - torch.arange(12)
    expected[..., null:] = expected[..., null:].masked_fill(back >= window, 0.0)
    total = expected.sum(-1, keepdim=True)
    torch.testing.assert_close(weights, expected / total.masked_fill(total == 0, 1.0))
