"""The published network, number by number, and the names of its weights."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from taylorformer_forecast.core.protocol import negative_log_likelihood
from taylorformer_forecast.core.taylor import LocalTaylor
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.models.published import reference_names
from taylorformer_forecast.models.taylorformer import Taylorformer

pytestmark = pytest.mark.usefixtures("float64")

VECTORS = Path(__file__).parents[2].parent / "shared" / "oracle" / "taylorformer"
needs_vectors = pytest.mark.skipif(not VECTORS.exists(), reason="the reference vectors are not here")

FILES = {
    "exchange": ("case_E_exchange_random_6_5", "weights_exchange_random"),
    "bounded": ("case_F_exchange_random_boundstd_6_5", "weights_exchange_random"),
    "training": ("case_G_exchange_random_trainmode_6_5", "weights_exchange_random"),
    "two coordinates": ("case_H_2d_random_8_6", "weights_2d_random"),
}


@dataclass(frozen=True)
class Vectors:
    """A stored case and the network and window that it belongs to."""

    stored: dict[str, np.ndarray]
    net: Taylorformer
    window: Window

    def close(self, got: Any, name: str, atol: float, rtol: float = 0.0, rows: slice | None = None) -> None:
        """Compare with a stored array, or with some of its points (axis 1)."""
        expected = self.stored[name] if rows is None else self.stored[name][:, rows]
        got = torch.as_tensor(got).detach().numpy().reshape(expected.shape)
        np.testing.assert_allclose(got, expected, rtol=rtol, atol=atol, err_msg=name)


def load(case: str, monkeypatch: pytest.MonkeyPatch) -> Vectors:
    file, weights = (dict(np.load(VECTORS / f"{name}.npz")) for name in FILES[case])
    net = Taylorformer.from_reference(
        weights, num_heads=int(file["cfg/num_heads"]), bound_std=bool(file["cfg/bound_std"]), dropout=0.0
    )
    # The published code reads float32; double precision from there on leaves its own rounding only.
    x, y = (torch.as_tensor(file[f"in/{name}"]).float().double() for name in "xy")
    window = Window(x if x.shape[-1] == 2 else x[..., 0], y, n_context=int(file["in/n_C"]))
    if case == "two coordinates":
        first, second = (
            np.concatenate([file[f"in/noise_{k}"], file[f"in/noise_{k + 2}"]], 1) for k in range(2)
        )
        noise = torch.as_tensor(np.stack([first, second], 2)).double()
        monkeypatch.setattr(LocalTaylor, "jitter", lambda _, near: noise)
    return Vectors(file, net, window)


@pytest.fixture(params=["exchange", "bounded", "two coordinates"])
def vectors(request, monkeypatch):
    return load(request.param, monkeypatch)


@needs_vectors
def test_the_predictive_distribution_is_that_of_the_published_code(vectors):
    distribution = vectors.net(vectors.window)
    vectors.close(distribution.mean, "out/mu", 1e-5)
    vectors.close((distribution.stddev - 0.001).log(), "out/log_sigma", 2e-5)
    vectors.close(-distribution.log_prob(vectors.window.targets[0]), "out/nll_per_point", 1e-4)
    vectors.close(negative_log_likelihood(distribution, vectors.window), "out/mean_nll", 1e-5)


@needs_vectors
def test_neighbours_differences_and_derivatives_are_those_of_the_published_code(vectors):
    f = vectors.net.streams.tokens(vectors.window, vectors.window.attention_mask())
    k = f.near.shape[2]
    for rank in range(k):
        name = "feat/nn_index" if k == 1 else f"feat/nn_index{rank + 1}"
        assert np.array_equal(f.found.index[:, :, rank, 0].numpy(), vectors.stored[name])
    vectors.close(f.near, "feat/y_n", 1e-6)
    vectors.close(f.difference, "feat/y_diff", 1e-6)
    vectors.close(f.found.offset, "feat/x_diff", 1e-6)
    raw = torch.as_tensor(vectors.stored["feat/d_raw"])
    clipped = torch.where(raw.abs() > 200, 0.0, raw)
    torch.testing.assert_close(f.derivatives[:, :, 0].flatten(2), clipped.double(), rtol=2e-5, atol=1e-5)
    vectors.close(f.derivatives[:, :, 1:].flatten(2), "feat/d_bn_and_label", 2e-5, rtol=1e-6)


@needs_vectors
def test_tokens_and_hidden_states_are_those_of_the_published_code(vectors):
    net, seen = vectors.net, {}
    last = len(net.streams.xy_blocks) - 1

    def record_input(name):
        return lambda _, args: seen.__setitem__(name, args)

    def record_output(name):
        return lambda _, args, out: seen.__setitem__(name, out)

    net.streams.x_blocks[0].register_forward_pre_hook(record_input("x features"))
    net.streams.xy_blocks[0].register_forward_pre_hook(record_input("xy features"))
    for i in range(last):
        net.streams.x_blocks[i].register_forward_hook(record_output(f"act/x_{i}"))
        net.streams.xy_blocks[i].register_forward_hook(record_output(f"act/xy_{i}"))
    net.streams.x_last.norm_feedforward.register_forward_hook(record_output(f"act/x_{last}"))
    net.streams.xy_blocks[last].register_forward_hook(record_output(f"act/xy_{last}"))
    net.streams.join.register_forward_hook(record_output("act/z"))
    net(vectors.window)

    vectors.close(seen["x features"][0], "feat/query_x", 1e-5)
    query, key, mask = seen["xy features"]
    vectors.close(query, "feat/query_xy", 2e-5, rtol=1e-6)
    vectors.close(key, "feat/key_xy", 2e-5, rtol=1e-6)
    assert np.array_equal(mask[0].numpy(), vectors.stored["feat/mask"])
    targets = slice(vectors.window.n_context, None)
    for i in range(last):
        vectors.close(seen[f"act/x_{i}"], f"act/x_{i}", 5e-5)
        vectors.close(seen[f"act/xy_{i}"], f"act/xy_{i}", 5e-5)
    for name in (f"act/x_{last}", f"act/xy_{last}", "act/z"):  # the last layers serve the targets alone
        vectors.close(seen[name], name, 5e-5, rows=targets)


@needs_vectors
def test_cached_sampling_reproduces_the_published_code(vectors):
    net, w = vectors.net, vectors.window
    state = net.encode(w, n_paths=2)
    for step in range(w.n_targets):
        d = net.query(state, step)
        for path in range(2):
            vectors.close(d.mean[:, path], "out/mu", 1e-5, rows=slice(step, step + 1))
            vectors.close(
                (d.stddev[:, path] - 0.001).log(), "out/log_sigma", 2e-5, rows=slice(step, step + 1)
            )
        state = net.observe(state, step, w.targets[0][:, step, None].expand(-1, 2, -1))


# ---- one step of training -----------------------------------------------------------------------------


def named(net: Taylorformer, values: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Give tensors of parameters' shapes, one for each parameter, the names of the published arrays."""
    holder = copy.deepcopy(net)
    for name, parameter in holder.named_parameters():
        parameter.data = values[name]
    return {name: (t.T if transposed else t) for t, name, transposed in reference_names(holder)}


@pytest.fixture
def trained(monkeypatch):
    """Return the training case after the backward pass, with its loss and gradients."""
    vectors = load("training", monkeypatch)
    net = vectors.net.train()
    loss = negative_log_likelihood(net(vectors.window), vectors.window)
    loss.backward()
    gradients = {name: parameter.grad for name, parameter in net.named_parameters()}
    return vectors, loss, gradients


@needs_vectors
def test_the_training_loss_uses_batch_statistics_as_the_published_code_does(trained):
    vectors, loss, _ = trained
    vectors.close(loss, "out/mean_nll", 1e-5)
    norm = vectors.net.streams.tokens.local.norm
    vectors.close(norm.mean, "out/new_moving_mean", 1e-6)
    vectors.close(norm.variance, "out/new_moving_variance", 1e-5)


def trainable(stored, prefix):
    return [name.removeprefix(prefix) for name in stored if name.startswith(prefix) and "moving" not in name]


@needs_vectors
def test_every_gradient_is_that_of_the_published_code(trained):
    vectors, _, gradients = trained
    got, names = named(vectors.net, gradients), trainable(vectors.stored, "grad/")
    assert set(names) == {name for name in got if "moving" not in name}
    largest = max(np.abs(vectors.stored[f"grad/{name}"]).max() for name in names)
    for name in names:
        size = np.abs(vectors.stored[f"grad/{name}"]).max()
        # Biases of keys have no gradient but rounding noise, which is relative to the other gradients.
        vectors.close(got[name], f"grad/{name}", max(1e-5 * size, 1e-7 * largest))


@needs_vectors
def test_one_step_of_adam_gives_the_weights_of_the_published_code(trained):
    vectors, _, gradients = trained
    stepped = {}
    for name, parameter in vectors.net.named_parameters():
        g = gradients[name]
        # The first step in Keras' form: both moments start at zero, epsilon is not corrected for bias.
        step = 3e-4 * (1 - 0.999) ** 0.5 / (1 - 0.9) * 0.1 * g / ((0.001 * g * g).sqrt() + 1e-7)
        stepped[name] = (parameter - step).detach()
    got = named(vectors.net, stepped)
    for name in trainable(vectors.stored, "adam1/"):
        if name.endswith("W_k/bias"):  # steps along rounding noise: only their size is known
            before = named(vectors.net, dict(vectors.net.named_parameters()))[name].detach().numpy()
            assert np.abs(vectors.stored[f"adam1/{name}"] - before).max() < 3.1e-4
        else:
            vectors.close(got[name], f"adam1/{name}", 2e-6)


# ---- names and sizes, without stored numbers ----------------------------------------------------------


def exported(net):
    return {
        name: (t.T if transposed else t).detach().clone().numpy()
        for t, name, transposed in reference_names(net)
    }


@pytest.mark.parametrize("name", ["code", "code-2d"])
@pytest.mark.parametrize("bound_std", [False, True])
def test_a_network_rebuilt_from_its_exported_arrays_predicts_the_same(build_case, name, bound_std):
    case = build_case(name)
    scale = "bounded" if bound_std else "exp"
    time_max = 1.0 if name == "code" else 2.0
    net, w = case.net(n_layers=4, scale=scale, time_max=time_max), case.window()
    rebuilt = Taylorformer.from_reference(exported(net), num_heads=2, bound_std=bound_std)
    assert not rebuilt.training
    first, second = net(w), rebuilt(w)
    torch.testing.assert_close(second.mean, first.mean, rtol=0, atol=1e-13)
    torch.testing.assert_close(second.stddev, first.stddev, rtol=0, atol=1e-13)


def test_names_cover_every_tensor_of_the_network_once(build_case):
    net = build_case("code").net()
    pairs = list(reference_names(net))
    assert len({name for _, name, _ in pairs}) == len(pairs)
    statistics = net.streams.tokens.local.norm.mean.numel() + net.streams.tokens.local.norm.variance.numel()
    total = sum(parameter.numel() for parameter in net.parameters()) + statistics
    assert sum(tensor.numel() for tensor, _, _ in pairs) == total


def test_a_missing_array_is_named(build_case):
    arrays = exported(build_case("code").net())
    del arrays["mha_xy_b/0/mha/W_v/bias"]
    with pytest.raises(KeyError, match="mha_xy_b/0/mha/W_v/bias"):
        Taylorformer.from_reference(arrays, num_heads=2)


@pytest.mark.parametrize(
    ("sizes", "count"),
    [
        ({"n_heads": 6, "head_dim": 11, "d_model": 32, "n_layers": 4}, 91_858),
        ({"n_heads": 8, "head_dim": 12, "d_model": 32, "n_layers": 3}, 93_572),
    ],
)
def test_the_published_configurations_have_the_published_numbers_of_parameters(sizes, count):
    net = Taylorformer(preset="code", dim_encoding=32, **sizes)
    assert sum(p.numel() for p in net.parameters() if p.requires_grad) == count
