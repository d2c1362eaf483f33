"""Fixtures shared by all tests."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from unittest import mock

import jaxtyping
import numpy as np
import pytest
import torch
from lightning_fabric.utilities import registry as lightning_registry

from taylorformer_forecast.core.attention.registry import KERNELS
from taylorformer_forecast.core.families import registry
from taylorformer_forecast.core.window import Window

SHAPES_CHECKED = ("baselines", "core", "engine", "golden", "models")  # folders of tests


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Check shapes at run time in tests of the parts; those of hosts would take up to two thirds longer."""
    jaxtyping.config.update("jaxtyping_disable", item.path.parent.name not in SHAPES_CHECKED)


def pytest_fixture_setup(fixturedef: pytest.FixtureDef) -> None:
    """Seed the global generators before every fixture: what it draws depends on no other test."""
    seed_globals(fixturedef.argname)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Seed them before every test, too."""
    seed_globals(item.nodeid)


def seed_globals(name: str) -> None:
    """Seed the global generators of torch and numpy by a name."""
    seed = zlib.crc32(name.encode())
    torch.manual_seed(seed)
    np.random.seed(seed)  # noqa: NPY002


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    """Networks here are so small that a second thread only waits for the first."""
    torch.set_num_threads(1)


@pytest.fixture(autouse=True, scope="session")
def _one_look_for_plugins() -> Iterator[None]:
    """Lightning reads what every installed package registers, for each trainer: a tenth of a tiny fit."""
    with mock.patch.object(lightning_registry, "entry_points", cache(lightning_registry.entry_points)):
        yield


@pytest.fixture(autouse=True)
def _registries() -> Iterator[None]:
    """Families and kernels that a test or a page registers are gone after it."""
    with ExitStack() as undone:
        for names in (KERNELS, registry.FAMILIES, registry._BY_KIND, registry._COMPONENTS):
            undone.enter_context(mock.patch.dict(names))
        yield


@pytest.fixture
def float64() -> Iterator[None]:
    """Make float64 the default dtype, for tests of mathematics."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


@pytest.fixture
def no_shape_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turn off the run-time shape checks that only tests have, to see the errors that users see."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def random_window(
    n_windows: int = 3,
    n_context: int = 7,
    n_targets: int = 5,
    dim_y: int = 1,
    dim_t: int = 1,
    dim_covariates: int = 0,
    times: str = "irregular",
    missing: str = "none",
    missing_targets: str = "none",
    seed: int = 0,
) -> Window:
    """Draw random windows in the default dtype, without two equal distances unless times are regular.

    ``times`` is "irregular" (increasing), "unordered" (context and targets interleave) or "regular" (one
    grid for all windows, square with two coordinates). ``missing`` says what the context lacks and
    ``missing_targets`` what the targets lack: "none", "rows" (points of which nothing was observed) or
    "entries" (columns one by one). Missing values are NaN; every column of every context keeps two.
    """
    g = torch.Generator().manual_seed(seed)
    dtype, n = torch.get_default_dtype(), n_context + n_targets

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=g, dtype=torch.float64).to(dtype)

    if times == "regular":
        side = math.ceil(n ** (1 / dim_t))  # a line, or the first rows of a square
        grid = torch.cartesian_prod(*[torch.linspace(-1, 1, side, dtype=dtype)] * dim_t)
        t = grid.view(side**dim_t, dim_t)[:n].repeat(n_windows, 1, 1)
    elif dim_t == 2:  # anywhere in the square
        t = 2 * torch.rand(n_windows, n, 2, generator=g, dtype=torch.float64).to(dtype) - 1
    else:
        gaps = 0.2 + torch.rand(n_windows, n, generator=g, dtype=torch.float64)
        t = (2 * gaps.cumsum(1) / gaps.sum(1, keepdim=True) - 1).to(dtype)[..., None]
    if times == "unordered":
        order = torch.argsort(torch.rand(n_windows, n, generator=g), 1)
        t = t.gather(1, order[..., None].expand_as(t))
    y = normal(n_windows, n, dim_y)
    for part, kind in ((slice(0, n_context), missing), (slice(n_context, n), missing_targets)):
        length = part.stop - part.start
        width = dim_y if kind == "entries" else 1
        gone = torch.rand(n_windows, length, width, generator=g) < 0.4
        if part.start == 0:  # two points stay
            keep = torch.argsort(torch.rand(n_windows, length, width, generator=g), 1) < 2
            gone &= ~keep
        if kind != "none":
            y[:, part] = y[:, part].masked_fill(gone, float("nan"))
    covariates = normal(n_windows, n, dim_covariates) if dim_covariates else None
    return Window(t[..., 0] if dim_t == 1 else t, y, covariates=covariates, n_context=n_context)


@pytest.fixture
def make_window() -> Callable[..., Window]:
    """Return :func:`random_window`, the builder of random windows."""
    return random_window
