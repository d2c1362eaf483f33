"""Local attention: against stored vectors, against a dense mask, without anything quadratic."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from taylorformer_forecast.core.attention import local as module
from taylorformer_forecast.core.attention.kernels import Full
from taylorformer_forecast.core.attention.local import Local, log_window

VECTORS = Path(__file__).parents[2].parent / "shared" / "oracle" / "lam"


def randn(*shape, seed=0, dtype=torch.float64, grad=True):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=g, dtype=torch.float64).to(dtype).requires_grad_(grad)


def band(rows, n, window):
    query, key = torch.arange(n - rows, n)[:, None], torch.arange(n)
    return ((key <= query) & (key > query - window))[None]


def out_and_gradients(kernel, q, k, v, *args, seed=9):
    out = kernel(q, k, v, *args)
    towards = torch.randn(out.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return out, *torch.autograd.grad(out, (q, k, v), towards.to(out))


# ---- the definition ---------------------------------------------------------------------------------------


@pytest.mark.skipif(not VECTORS.exists(), reason="the stored vectors are not here")
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["64", "32"])
@pytest.mark.parametrize("short", [0, module.SHORT], ids=["blocks", "by size"])
@pytest.mark.parametrize("file", sorted(VECTORS.glob("*.npz")), ids=lambda file: file.stem)
def test_outputs_and_gradients_are_those_of_the_stored_vectors(file, short, dtype, monkeypatch):
    monkeypatch.setattr(module, "SHORT", short)
    stored = dict(np.load(file))
    q, k, v, towards = (torch.as_tensor(stored[name]).to(dtype) for name in ("q", "k", "v", "grad_out"))
    inputs = [x.requires_grad_() for x in (q, k, v)]
    out = Local(window=int(stored["L"]))(*inputs)
    got = (out, *torch.autograd.grad(out, inputs, towards))
    large = file.stem.startswith("big_scores")
    tolerance, of_gradients = (1e-12, 1e-12) if dtype == torch.float64 else (2e-6, 2e-6)
    if dtype == torch.float32 and large:
        tolerance, of_gradients = 2e-4, 1e-3
    for name, value in zip(("out", "grad_q", "grad_k", "grad_v"), got, strict=True):
        expected = torch.as_tensor(stored[name]).double()
        # Gradients in units of their size, which is 17 where scores are large.
        atol = tolerance if name == "out" else of_gradients * max(1.0, expected.abs().max().item())
        torch.testing.assert_close(
            value.double(), expected, rtol=0, atol=atol, msg=lambda m, name=name: f"{name}: {m}"
        )


@pytest.mark.parametrize("padding", ["no mask", "padding", "shared padding", "dense", "shared dense"])
@pytest.mark.parametrize("seed", range(24))
def test_it_is_full_attention_under_the_mask_of_the_window(seed, padding):
    r = random.Random(f"{seed}{padding}")
    n = r.choice([1, 2, r.randint(3, 64), r.randint(65, 300)])
    rows, window = r.choice([n, r.randint(1, n)]), r.choice([1, 2, r.randint(1, n), r.randint(n, 2 * n)])
    b, h, d, width = r.randint(1, 3), r.randint(1, 3), r.randint(1, 20), r.randint(1, 9)
    q, k, v = randn(b, h, rows, d), randn(b, h, n, d, seed=1), randn(b, h, n, width, seed=2)
    mask, sees = None, band(rows, n, window)
    if padding != "no mask":
        shape = (1 if "shared" in padding else b, rows if "dense" in padding else 1, n)
        mask = torch.rand(shape, generator=torch.Generator().manual_seed(seed)) < r.choice([0.05, 0.5, 0.95])
        sees = sees & mask
    scale = r.choice([None, 0.3])
    got = out_and_gradients(Local(window=window), q, k, v, mask, scale)
    for value, expected in zip(got, out_and_gradients(Full(), q, k, v, sees, scale), strict=True):
        torch.testing.assert_close(value, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n", [5, 70])
@pytest.mark.parametrize("masked", [False, True])
def test_it_passes_gradcheck_with_an_empty_row(n, masked):
    q, k, v = randn(1, 2, n, 2), randn(1, 2, n, 2, seed=1), randn(1, 2, n, 1, seed=2)
    mask = torch.ones(1, 1, n, dtype=torch.bool)
    mask[..., :3] = False
    kernel = Local(window=3)
    assert torch.autograd.gradcheck(lambda q, k, v: kernel(q, k, v, mask if masked else None), (q, k, v))


@pytest.mark.parametrize("n", [10, 100])
@pytest.mark.parametrize("empty", ["a stretch", "everything"])
def test_a_query_that_sees_nothing_gets_zeros_and_gives_no_gradient(n, empty):
    q, k, v = (randn(2, 2, n, 4, seed=s) for s in range(3))
    mask = torch.ones(2, 1, n, dtype=torch.bool)
    mask[:, :, slice(2, 8) if empty == "a stretch" else slice(None)] = False
    out = Local(window=3)(q, k, v, mask)
    blind = slice(4, 8) if empty == "a stretch" else slice(None)
    assert (out[:, :, blind] == 0).all()
    out.square().sum().backward()
    assert (q.grad[:, :, blind] == 0).all()
    assert all(torch.isfinite(x.grad).all() for x in (q, k, v))
    if empty == "everything":
        assert all((x.grad == 0).all() for x in (q, k, v))


# ---- window and types -------------------------------------------------------------------------------------


def test_the_default_window_is_four_times_the_logarithm_rounded_up():
    lengths = {24: 16, 48: 16, 96: 20, 168: 24, 336: 24, 720: 28, 960: 28, 5760: 36}
    assert {n: log_window(n) for n in lengths} == lengths
    assert {n: Local().reach(n) for n in lengths} == lengths
    assert [Local().reach(n) for n in (1, 2, 3, 12)] == [1, 2, 3, 12]  # no more than there are


def test_a_window_may_be_a_number_or_a_function():
    q, k, v = (randn(1, 1, 90, 3, seed=s) for s in range(3))
    assert torch.equal(Local(window=9)(q, k, v), Local(window=lambda n: n // 10)(q, k, v))
    assert Local(window=lambda n: 0).reach(5) == 1
    assert Local(window=lambda n: n // 10).for_length(90) == Local(window=9)


@pytest.mark.usefixtures("no_shape_checks")
@pytest.mark.parametrize("window", [0.5, 8.0, "8", None])
def test_a_window_that_is_neither_a_number_of_points_nor_a_function_is_refused(window):
    with pytest.raises(ValueError, match=f"window={window!r} is neither a whole number nor a function"):
        Local(window=window)


@pytest.mark.usefixtures("no_shape_checks")
@pytest.mark.parametrize("window", [np.int64(8), lambda n: np.int64(8)])
def test_a_window_may_be_a_whole_number_of_numpy(window):
    assert Local(window=window).reach(20) == 8
    assert type(Local(window=window).reach(20)) is int


def test_a_window_of_nothing_and_queries_without_a_position_are_refused():
    with pytest.raises(ValueError, match="window=0, but a query sees at least itself"):
        Local(window=0)
    with pytest.raises(ValueError, match="3 queries of 2 points"):
        Local()(randn(1, 1, 3, 4), randn(1, 1, 2, 4), randn(1, 1, 2, 4))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("n", [20, 150])
def test_half_precision_is_accumulated_in_single(n, dtype):
    q, k, v = (randn(2, 2, n, 8, seed=s).detach().to(dtype).requires_grad_() for s in range(3))
    got = out_and_gradients(Local(window=5), q, k, v)
    single = [x.detach().float().requires_grad_() for x in (q, k, v)]
    for value, expected in zip(got, out_and_gradients(Local(window=5), *single), strict=True):
        assert value.dtype == dtype
        torch.testing.assert_close(value.float(), expected, rtol=0, atol=20 * torch.finfo(dtype).eps)


def test_autocast_does_not_lower_the_precision_of_single_inputs():
    q, k, v = (randn(1, 2, 100, 4, seed=s, dtype=torch.float32) for s in range(3))
    before = Local(window=5)(q, k, v)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(Local(window=5)(q, k, v), before)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("masked", [False, True])
def test_on_a_gpu_it_is_full_attention_under_the_mask_of_the_window(dtype, masked):
    q, k, v = (randn(2, 4, 1300, 64, seed=s, dtype=dtype, grad=False).cuda() for s in range(3))
    mask = (torch.rand(2, 1, 1300, device="cuda") < 0.5) if masked else None
    sees = band(1300, 1300, 28).cuda()
    inputs = [x.requires_grad_() for x in (q, k, v)]
    got = out_and_gradients(Local(window=28), *inputs, mask)
    expected = out_and_gradients(Full(), *inputs, sees if mask is None else sees & mask)
    for value, reference in zip(got, expected, strict=True):
        torch.testing.assert_close(value, reference, rtol=0, atol=max(1e-4, 20 * torch.finfo(dtype).eps))


# ---- size -------------------------------------------------------------------------------------------------


class LargestTensor(TorchDispatchMode):
    """Note the largest storage behind any result."""

    def __init__(self):
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for value in tree_leaves(out):
            if isinstance(value, torch.Tensor):
                self.bytes = max(self.bytes, value.untyped_storage().nbytes())
        return out


def largest(n, masked, window):
    q, k, v = (randn(1, 1, n, 8, seed=s, dtype=torch.float32) for s in range(3))
    mask = torch.arange(n).view(1, 1, n) >= 5 if masked else None
    with LargestTensor() as note:
        Local(window=window)(q, k, v, mask).sum().backward()
    return note.bytes


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("window", [log_window, 1024])
def test_no_tensor_grows_faster_than_the_number_of_points(masked, window):
    # Inputs and outputs have 32 bytes a point, the positions of a block 8 bytes for each of 32 rows.
    assert largest(4096, masked, window) <= max(32 * 4096, 8 * 32 * (1024 + 32))
    if window is log_window:
        assert largest(4096, masked, window) <= 4 * largest(1024, masked, window)
