"""Attention in continuous time: limits, the closed form against solvers, causality, gradients."""

from __future__ import annotations

import pytest
import torch
from reference_solvers import PairwiseAttention

from taylorformer_forecast.core.attention.kernels import Full
from taylorformer_forecast.core.attention.layer import MultiHeadAttention
from taylorformer_forecast.core.attention.local import log_window
from taylorformer_forecast.core.continuous import merging, problem
from taylorformer_forecast.core.continuous.attention import DYNAMICS, ContinuousAttention
from taylorformer_forecast.core.continuous.closed_form import Relaxation, moment
from taylorformer_forecast.core.continuous.interpolation import INTERPOLATIONS, Interpolation
from taylorformer_forecast.core.continuous.solvers import integrate_all

pytestmark = pytest.mark.usefixtures("float64")

B, N, M, WIDTH, HEADS = 2, 9, 4, 8, 2


def neutral(solver=None, **options):
    """Build a layer, also with the reference's solvers."""
    if solver in ("pairwise", "torchdiffeq"):
        return PairwiseAttention(WIDTH, HEADS, WIDTH // HEADS, adaptive=solver == "torchdiffeq", **options)
    return ContinuousAttention(WIDTH, HEADS, WIDTH // HEADS, solver=solver, **options)


def layer(seed=0, fastest=2.0, **options):
    """Build a layer, no parameter of which is neutral."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        built = neutral(fastest=fastest, **options)
        with torch.no_grad():
            for parameter in built.parameters():
                parameter.add_(0.3 * torch.randn_like(parameter))
    return built


def draw(n=N, seed=0, span=1.0):
    """Reference points, their times, later query times, states there."""
    g = torch.Generator().manual_seed(seed)
    gaps = 0.2 + torch.rand(B, n + M, generator=g)
    t = span * gaps.cumsum(1) / gaps.sum(1, keepdim=True)
    x = torch.randn(B, n + M, WIDTH, generator=g)
    return x[:, :n], t[:, :n], t[:, n:], x[:, n:]


def times_of(kind, t, later):
    """Query times: those of the reference points, after all of them, anywhere."""
    if kind == "own":
        return None
    if kind == "later":
        return later
    anywhere = torch.stack([t[:, 0] - 0.1, (t[:, 2] + t[:, 3]) / 2, t[:, 4], later[:, 0]], 1)
    return anywhere[:, [2, 0, 3, 1]]


def close(got, expected, tolerance=1e-10):
    torch.testing.assert_close(got, expected, rtol=tolerance, atol=tolerance)


def same_weights(source, **options):
    other = layer(**options)
    other.load_state_dict(source.state_dict())
    return other


each_interpolation = pytest.mark.parametrize("interpolation", INTERPOLATIONS)
each_time = pytest.mark.parametrize("when", ["own", "later", "anywhere"])


# --- ordinary attention -----------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["closed", "midpoint", "rk4", "pairwise"])
def test_without_movement_and_with_a_constant_query_it_is_ordinary_attention(solver):
    dynamics = "none" if solver == "closed" else "mlp"  # whose field is zero before training
    continuous = neutral(dynamics=dynamics, solver=solver)
    with torch.no_grad():
        continuous.heads.query.weight.zero_()  # the bias, which is left, is the same for all points
    ordinary = MultiHeadAttention(WIDTH, WIDTH, HEADS, WIDTH // HEADS)
    ordinary.load_state_dict(continuous.heads.state_dict())
    x, t, later, _ = draw()
    close(continuous(x, t), ordinary(x, x, torch.ones(1, N, N, dtype=torch.bool).tril()))
    close(continuous(x, t, at=later), ordinary(x[:, :M], x))


@pytest.mark.parametrize("options", [{}, {"dynamics": "mlp"}, {"dynamics": "mlp", "solver": "pairwise"}])
def test_at_its_own_time_a_point_sees_inner_product_and_value_themselves(options):
    x, t, _, _ = draw(n=2)
    t = t[:, :1].expand(-1, 2).contiguous()  # two points at one time see each other
    built = layer(**options)
    ordinary = MultiHeadAttention(WIDTH, WIDTH, HEADS, WIDTH // HEADS)
    ordinary.load_state_dict(built.heads.state_dict())
    close(built(x, t), ordinary(x, x))


def test_the_limit_is_reached_from_after():
    x, t, _, _ = draw()
    built = layer()
    at = t[:, 4:5]
    close(built(x, t, at=at + 1e-9), built(x, t, at=at), 1e-6)


# --- closed form and solvers ------------------------------------------------------------------------------


@each_time
@pytest.mark.parametrize("average", ["mean", "last"])
@pytest.mark.parametrize("both_sides", [False, True])
def test_the_closed_form_equals_the_shared_solver(when, average, both_sides):
    x, t, later, x_later = draw(n=40)
    options = {"value_average": average, "both_sides": both_sides, "fastest": 1.0}
    at = times_of(when, t, later)
    closed = layer(**options)
    solved = same_weights(closed, solver="rk4", **options)
    shift = None if at is None else 0.5 * x_later
    close(closed(x, t, None, at, None, shift), solved(x, t, None, at, None, shift), 1e-5)


@each_interpolation
def test_the_closed_form_of_every_interpolation_equals_quadrature_of_each_pair(interpolation):
    """One pair at a time, by the midpoint rule within every interval."""
    x, t, _, _ = draw(n=6, span=3.0)
    built, x = layer(interpolation=interpolation), x[:1]
    t = t[:1]
    heads, field = built.heads, built.key_field
    query = Interpolation.through(t, heads.query(x), interpolation)
    relax = Relaxation(t, field.rate, field.rest)
    k = heads.split(heads.key(x))
    got = merging.between_all(relax.integrals(query), relax.decay, relax.keys(k))
    share = (torch.arange(2000) + 0.5) / 2000
    for i in range(6):
        total = torch.zeros(HEADS)
        for j in range(i, 6):
            close(got[0, :, j, i], total, 1e-6)
            if j < 5:
                step = t[0, j + 1] - t[0, j]
                at = t[0, j] + step * share
                q = query(at[None])[0].unflatten(-1, (HEADS, -1))
                moved = (field.rate * (at - t[0, i])[:, None, None]).exp()
                total = total + (q * (field.rest + moved * (k[0, :, i] - field.rest))).sum(-1).mean(0) * step


@pytest.mark.parametrize("n", [1, 2, 9, 12, 13])
def test_integrals_of_pairs_do_not_depend_on_how_segments_are_merged(n, monkeypatch):
    """In segments of four knots, one after the other, and all in pairs; with their gradients."""
    generator = torch.Generator().manual_seed(0)

    def results(length):
        monkeypatch.setattr(merging, "SEGMENT", length)
        generator.manual_seed(0)
        parts = [torch.rand(2, 3, n, 5, generator=generator).double().requires_grad_() for _ in range(5)]
        table, end = merging.between_all(*parts), merging.to_last(*parts[:2])
        total = table.tril(-1).sin().sum() + end.cos().sum()
        gradients = torch.autograd.grad(total, parts, allow_unused=True, materialize_grads=True)
        return table.tril(-1), end, *gradients

    for one, other in zip(results(4), results(64), strict=True):
        close(one, other, 1e-9)


@each_interpolation
@pytest.mark.parametrize("first", [1, 5, 8, 32, 39, 40])
def test_the_last_reference_points_attend_as_they_do_among_all(interpolation, first):
    x, t, _, _ = draw(n=40)
    shift, mask = 0.5 * x, torch.ones(1, 40, 40, dtype=torch.bool).tril(-1)
    built = layer(interpolation=interpolation, window=7)
    among_all = built(x, t, mask, None, x + shift, shift)[:, first:]
    alone = built(x, t, mask[:, first:], None, (x + shift)[:, first:], shift[:, first:], first)
    close(alone, among_all, 1e-9)
    close(built(x, t, first=first), built(x, t)[:, first:], 1e-9)


@pytest.mark.parametrize("options", [{"both_sides": True}, {"solver": "rk4"}])
def test_only_the_closed_form_of_earlier_points_is_asked_at_the_last_reference_points(options):
    x, t, _, _ = draw()
    with pytest.raises(ValueError, match="first=2 needs the closed form"):
        layer(**options)(x, t, first=2)


@pytest.mark.parametrize(("method", "bound"), [("rk4", 1e-6), ("midpoint", 2e-4)])
@pytest.mark.parametrize("options", [{"dynamics": "mlp"}, {"solver": "rk4"}], ids=["mlp", "linear"])
def test_the_shared_solver_equals_a_fine_reference(method, bound, options):
    """The same reference points and seven more knots within every interval, which nobody attends."""
    x, t, _, _ = draw(n=24)
    coarse = layer(**{**options, "solver": method}, fastest=1.0)
    heads, fields = coarse.heads, (coarse.key_field, coarse.value_field)
    query = Interpolation.through(t, heads.query(x))
    knots = torch.cat([torch.lerp(t[:, :-1], t[:, 1:], k / 8.0) for k in range(8)], 1).sort(1).values
    knots = torch.cat([knots, t[:, -1:]], 1)
    place = torch.arange(24) * 8

    def spread(values):
        out = values.new_zeros(B, knots.shape[1], WIDTH)
        out[:, place] = values
        return out

    k, v = heads.key(x), heads.value(x)
    got = integrate_all(query, k, v, *fields, HEADS, method)
    fine = integrate_all(query.refine(knots), spread(k), spread(v), *fields, HEADS, "rk4")
    for part, reference in zip(got, fine, strict=True):
        rows = 2 if part.shape[1] == HEADS else 1
        reference = reference.index_select(rows, place).index_select(rows + 1, place)
        assert (part - reference).abs().max() < bound * reference.abs().max()


def test_the_pairwise_solver_comes_near_with_many_nodes_and_is_far_off_with_few():
    x, t, _, _ = draw()
    closed = layer()
    errors = []
    for n_nodes in (3, 16, 64):
        solved = same_weights(closed, solver="pairwise", n_nodes=n_nodes)
        errors.append((solved(x, t) - closed(x, t)).abs().max().item())
    assert errors[0] > 10 * errors[2]
    assert errors[2] < 1e-2 * closed(x, t).abs().max()


def test_the_pairwise_solver_is_exact_where_the_query_is_constant():
    closed = layer(fastest=1.0)
    with torch.no_grad():
        closed.heads.query.weight.zero_()
    x, t, later, _ = draw()
    for average in ("mean", "last"):
        exact = same_weights(closed, value_average=average, fastest=1.0)
        solved = same_weights(closed, value_average=average, fastest=1.0, solver="pairwise", n_nodes=6)
        close(solved(x, t), exact(x, t), 1e-6)
        close(solved(x, t, at=later), exact(x, t, at=later), 1e-6)


def test_torchdiffeq_gives_what_the_pairwise_solver_gives():
    pytest.importorskip("torchdiffeq")
    x, t, _, _ = draw()
    ours = layer(dynamics="mlp", solver="pairwise", n_nodes=8)
    close(same_weights(ours, dynamics="mlp", solver="torchdiffeq", n_nodes=8)(x, t), ours(x, t), 1e-5)


def test_queries_after_the_last_point_need_no_table(monkeypatch):
    """The short cut for them gives what the way over all times gives."""
    x, t, later, x_later = draw()
    built, shift = layer(), 0.5 * x_later
    quick = built(x, t, None, later, None, shift)
    module = "taylorformer_forecast.core.continuous.attention"
    monkeypatch.setattr(f"{module}.holds_everywhere", lambda *_, **__: False)
    close(built(x, t, None, later, None, shift), quick)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_spans_of_any_length_lose_no_precision(dtype):
    """The largest exponent is four thousand here; single precision ends at 88."""
    x, t, later, x_later = (v.to(dtype) for v in draw(n=40, span=500.0))
    built = layer(fastest=8.0)
    exact = built(*(v.double() for v in (x, t)), None, later.double(), x_later.double())
    got = built.to(dtype)(x, t, None, later, x_later)
    assert torch.isfinite(got).all()
    close(got.double(), exact, 1e-4 if dtype == torch.float32 else 1e-12)


@pytest.mark.parametrize("k", [0, 1, 2, 3])
def test_moments_are_accurate_and_have_the_next_as_derivative(k):
    z = -torch.tensor([0.0, 1e-12, 1e-6, 0.1, 0.499, 0.501, 1.0, 3.0, 30.0, 800.0])
    share = torch.linspace(0.0, 1.0, 200_001)
    values = share**k * torch.exp(z[:, None] * share)
    simpson = (
        values[:, 0] + values[:, -1] + 4 * values[:, 1:-1:2].sum(1) + 2 * values[:, 2:-1:2].sum(1)
    ) / 600_000
    close(moment(z, k), simpson, 1e-9)
    z = z[3:].clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda z: moment(z, k), (z,))


# --- masks, order, windows --------------------------------------------------------------------------------

EVERY = [
    {},
    {"interpolation": "hermite", "value_average": "last"},
    {"interpolation": "hold"},
    {"dynamics": "none"},
    {"dynamics": "mlp"},
    {"dynamics": "mlp", "solver": "pairwise"},
]
each_option = pytest.mark.parametrize(
    "options", EVERY, ids=lambda o: "-".join(map(str, o.values())) or "default"
)


@each_option
def test_nothing_depends_on_later_points(options):
    x, t, _, _ = draw()
    built = layer(**options)
    for j in range(N):
        changed = x.clone()
        changed[:, j] += 1.0
        difference = (built(changed, t) - built(x, t)).abs().amax((0, 2))
        assert (difference[:j] == 0).all()
        assert (difference[j:] > 0).all() or options.get("interpolation") == "hold"


@each_option
@each_time
def test_hidden_points_at_the_end_change_nothing(options, when):
    """Copies of the last point, hidden by the mask: how windows of different lengths are filled."""
    x, t, later, _ = draw()
    built, at = layer(**options), times_of(when, t, later)
    padded = [torch.cat([v, v[:, -1:], v[:, -1:]], 1) for v in (x, t)]
    visible = torch.arange(N + 2).expand(B, 1, -1) < N
    close(built(*padded, visible, at)[:, : (N if at is None else M)], built(x, t, None, at))


@each_option
@each_time
def test_a_hidden_key_has_no_weight(options, when):
    x, t, later, _ = draw()
    built, at = layer(**options), times_of(when, t, later)
    mask = torch.ones(B, 1, N, dtype=torch.bool)
    mask[:, :, 3] = False

    def with_key(value):
        """Output where the key and value of point 3, not its query, are others."""
        built.heads.key.register_forward_hook(hook := (lambda _, args, out: out + value * one))
        built.heads.value.register_forward_hook(hook)
        out = built(x, t, mask, at)
        built.heads.key._forward_hooks.clear()
        built.heads.value._forward_hooks.clear()
        return out

    one = (torch.arange(N) == 3)[:, None].double()
    assert torch.equal(with_key(0.0), with_key(7.0))


@each_time
@pytest.mark.parametrize("masked", ["no", "alike", "each"])
def test_windows_may_be_taken_a_few_at_a_time(when, masked, monkeypatch):
    x, t, later, _ = draw()
    built, at = layer(), times_of(when, t, later)
    visible = torch.arange(N) < torch.tensor([N - 2, N - 1])[:, None]
    mask = {"no": None, "alike": visible[:1, None], "each": visible[:, None]}[masked]

    def found():
        out = built(x, t, mask, at)
        return out, *torch.autograd.grad(out.square().sum(), list(built.parameters()))

    whole, rows = found(), []
    built.heads.query.register_forward_hook(lambda _, args, out: rows.append(len(args[0])))
    monkeypatch.setattr(problem, "FEW_SCORES", 1)
    for one, other in zip(found(), whole, strict=True):
        close(one, other)
    assert rows == [1] * B


def test_a_query_that_sees_nothing_gets_the_bias():
    x, t, _, _ = draw()
    built = layer()
    close(built(x, t, at=t[:, :1] - 1.0), built.heads.out.bias.expand(B, 1, -1))
    close(built(x, t, torch.zeros(B, 1, N, dtype=torch.bool)), built.heads.out.bias.expand(B, N, -1))


def test_both_sides_see_later_points_as_in_a_mirror():
    x, t, _, _ = draw()
    built = layer(both_sides=True)
    close(built(x.flip(1), -t.flip(1)).flip(1), built(x, t))
    changed = x.clone()
    changed[:, -1] += 1.0
    assert ((built(changed, t) - built(x, t)).abs() > 1e-9).any(2).all()


@pytest.mark.parametrize("options", [{}, {"dynamics": "mlp"}])
def test_a_window_hides_what_lies_further_back(options):
    x, t, _, _ = draw()
    near = layer(window=3, **options)
    back = torch.arange(N)[:, None] - torch.arange(N)
    close(near(x, t), layer(**options)(x, t, (back < 3)[None]))


@pytest.mark.parametrize("options", [{}, {"dynamics": "mlp"}])
def test_local_attention_is_a_window_that_follows_from_the_number_of_points(options):
    x, t, _, _ = draw(n=40)
    local, windowed = layer(attention="local", **options), layer(window=log_window(40), **options)
    assert torch.equal(local(x, t), windowed(x, t))
    assert not torch.allclose(local(x, t), layer(**options)(x, t))
    given = layer(attention="local", window=3, **options)
    assert torch.equal(given(x, t), layer(window=3, **options)(x, t))


@pytest.mark.parametrize("options", [{}, {"dynamics": "mlp"}])
def test_a_single_point_sees_itself_under_local_attention_too(options):
    x, t, _, _ = draw(n=1)
    local = layer(attention="local", **options)
    assert torch.equal(local(x, t), layer(**options)(x, t))
    assert not torch.allclose(local(x, t), local.heads.out.bias)


# --- gradients and errors ---------------------------------------------------------------------------------


@each_option
@pytest.mark.parametrize("when", ["own", "anywhere"])
def test_gradients_are_right(options, when):
    x, t, later, _ = (v[:1] for v in draw(n=5))
    at = times_of(when, t, later)
    built = layer(**options)
    shapes = {name: parameter.shape for name, parameter in built.named_parameters()}

    def run(x, flat):
        parts = flat.split([shape.numel() for shape in shapes.values()])
        state = {name: part.view(shapes[name]) for name, part in zip(shapes, parts, strict=True)}
        shift = None if at is None else x[:, :M] * 0.5
        return torch.func.functional_call(built, state, (x, t, None, at, None, shift))

    flat = torch.cat([parameter.detach().flatten() for parameter in built.parameters()])
    inputs = [x.clone().requires_grad_(), flat.requires_grad_()]
    assert torch.autograd.gradcheck(run, inputs, atol=1e-6, fast_mode=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dynamics": "quadratic"}, "dynamics='quadratic'"),
        ({"dynamics": "mlp", "solver": "closed"}, "solver='closed' with dynamics='mlp'"),
        ({"interpolation": "spline"}, "interpolation='spline'"),
        ({"value_average": "first"}, "value_average='first'"),
        ({"window": 0}, "window=0"),
        ({"attention": "prob"}, "attention='prob': in continuous time a score is an average.*take 'full'"),
        ({"attention": Full()}, r"attention=Full\(\): in continuous time a score is an average"),
    ],
)
def test_unknown_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        ContinuousAttention(WIDTH, HEADS, WIDTH // HEADS, **options)


def test_every_solver_is_listed():
    assert {solver for solvers in DYNAMICS.values() for solver in solvers} == {
        "closed",
        "midpoint",
        "rk4",
    }


# --- interpolants -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", INTERPOLATIONS)
def test_interpolants_go_through_their_values_and_more_knots_leave_them_as_they_are(kind):
    x, t, later, _ = draw()
    path = Interpolation.through(t, x, kind)
    close(path(t), x)
    close(path(later), x[:, -1:].expand(-1, M, -1))
    close(path(t[:, :1] - 1.0), x[:, :1])
    knots = torch.cat([t, later, t[:, :3] + 0.01, t[:, :1] - 0.5], 1).sort(1).values
    at = torch.linspace(-1.0, 2.0, 101).expand(B, -1)
    close(path.refine(knots)(at), path(at))


def test_a_piece_of_a_cubic_depends_on_no_later_knot():
    x, t, _, _ = draw()
    changed = x.clone()
    changed[:, 5] += 1.0
    at = torch.lerp(t[:, :1], t[:, 4:5], torch.linspace(0.0, 1.0, 50))
    paths = [Interpolation.through(t, v, "hermite")(at) for v in (x, changed)]
    assert torch.equal(*paths)
