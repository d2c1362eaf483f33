"""Every preset and option of the networks, as parametrised fixtures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.distributions import Distribution

from taylorformer_forecast.baselines.gaussian_process import GaussianProcessBaseline
from taylorformer_forecast.baselines.linear import LinearBaseline
from taylorformer_forecast.baselines.linear_path import LinearPathBaseline, LinearTwoSidedBaseline
from taylorformer_forecast.baselines.neighbour import NeighbourBaseline
from taylorformer_forecast.core.attention.local import Local
from taylorformer_forecast.core.families import components
from taylorformer_forecast.core.taylor import LocalTaylor
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.models.contiformer import ContiFormer
from taylorformer_forecast.models.contiformer_gaps import ContiFormerGaps
from taylorformer_forecast.models.contiformer_paths import ContiFormerPaths
from taylorformer_forecast.models.direct import DirectTaylorformer
from taylorformer_forecast.models.lam import LAMTransformer
from taylorformer_forecast.models.taylorformer import Taylorformer
from taylorformer_forecast.models.tnp import TNPA
from taylorformer_forecast.models.unn import UNN

CALIBRATION = {"weight": 0.7, "inflation": 1.3, "mean_weight": 0.6}
# A name for every combination of options whose mathematics differs.
CASES: dict[str, dict[str, Any]] = {
    "paper": {},
    "paper-first-order": {"taylor_order": 1},
    "paper-three-slopes": {"n_derivative_neighbours": 3},
    "paper-no-neighbour-slope": {"neighbour_derivative": False},
    "paper-bounded": {"scale": "bounded"},
    "paper-mixture": {"distribution": "mixture"},
    "paper-studentt": {"distribution": "studentt"},
    "paper-covariates": {"dim_covariates": 2},
    "paper-three-columns": {"dim_y": 3},
    "paper-all-options": {
        "dim_y": 2,
        "dim_covariates": 2,
        "taylor_order": 1,
        "n_derivative_neighbours": 2,
        "distribution": "mixture",
        "n_layers": 2,
        "head_dim": 3,
    },
    "paper-2d": {"dim_t": 2},
    "paper-2d-columns": {"dim_t": 2, "dim_y": 2, "taylor_order": 1, "n_derivative_neighbours": 3},
    "neighbour": {"baseline": partial(NeighbourBaseline, 1), "weight": 0.5},
    "linear": {"baseline": partial(LinearPathBaseline, 5, 3), "weight": 0.5},
    "linear-whole": {"baseline": partial(LinearPathBaseline, 7, 5), "weight": 1.0},
    "linear-columns": {
        "baseline": partial(LinearPathBaseline, 7, 6),
        "weight": 0.7,
        "calibration": {"inflation": 1.3, "mean_weight": 0.6},
        "dim_y": 2,
        "dim_covariates": 2,
        "distribution": "mixture",
    },
    "linear-both-sides": {
        "baseline": partial(LinearTwoSidedBaseline, 7, 4),
        "weight": 0.5,
        "both_sides": True,
        "distribution": "studentt",
    },
    "both-sides": {"both_sides": True},
    "both-sides-columns": {"both_sides": True, "dim_y": 2, "n_derivative_neighbours": 4, "dim_covariates": 1},
    "gaussian": {
        "baseline": partial(GaussianProcessBaseline, 2),
        "calibration": CALIBRATION,
        "both_sides": True,
        "dim_covariates": 2,
        "distribution": "studentt",
    },
    "gaussian-columns": {
        "baseline": GaussianProcessBaseline,
        "calibration": CALIBRATION,
        "dim_y": 2,
        "distribution": "mixture",
    },
    "local": {"attention": "local"},
    "local-window": {"attention": Local(window=4)},
    "local-window-all-options": {
        "attention": Local(window=3),
        "dim_y": 2,
        "dim_covariates": 2,
        "taylor_order": 1,
        "n_derivative_neighbours": 2,
        "distribution": "mixture",
        "n_layers": 2,
        "head_dim": 3,
    },
    "code": {"preset": "code"},
    "code-two-slopes": {"preset": "code", "n_derivative_neighbours": 2, "neighbour_derivative": True},
    "code-columns": {"preset": "code", "dim_y": 2, "dim_covariates": 1, "scale": "bounded"},
    "code-2d": {"preset": "code", "dim_t": 2},
    "code-local-window": {"preset": "code", "attention": Local(window=4)},
}
# The same for networks that predict all targets at once.
LAM_CASES: dict[str, dict[str, Any]] = {
    "lam-modern": {
        "attention": Local(window=3),
        "baseline": partial(LinearBaseline, 7, 6),
        "weight": 0.5,
        "calibration": {"inflation": 1.3},
    },
    "lam-modern-full": {"attention": "full", "distribution": "mixture"},
    "lam-modern-columns": {
        "dim_y": 2,
        "dim_covariates": 3,
        "distribution": "quantile",
        "baseline": partial(LinearBaseline, 7, 6),
    },
    "lam-faithful": {"preset": "faithful", "dim_y": 3, "distribution": "mse"},
    "lam-faithful-paper": {
        "preset": "faithful",
        "attention": Local(window=3),
        "cross": "paper",
        "dim_covariates": 2,
        "double_residual": True,
        "scale_input": False,
    },
    "lam-faithful-alone": {"preset": "faithful", "distribution": "mae"},
}
# The same for the Taylorformer that sees the context alone.
DIRECT_CASES: dict[str, dict[str, Any]] = {
    "direct": {"baseline": partial(LinearBaseline, 7, 6), "distribution": "studentt"},
    "direct-columns": {
        "baseline": partial(LinearBaseline, 7, 6),
        "calibration": CALIBRATION,
        "dim_y": 2,
        "dim_covariates": 3,
        "distribution": "mixture",
        "n_layers": 2,
    },
}
ONE_SHOT = {**LAM_CASES, **DIRECT_CASES}
# The same for the ContiFormer, direct and path by path.
CONTIFORMER_CASES: dict[str, dict[str, Any]] = {
    "contiformer": {},
    "contiformer-hermite": {"interpolation": "hermite", "value_average": "last", "distribution": "mixture"},
    "contiformer-none": {"dynamics": "none", "both_sides": True, "n_layers": 1},
    "contiformer-mlp": {"dynamics": "mlp", "window": 3, "distribution": "quantile"},
    "contiformer-rk4": {"dynamics": "mlp", "solver": "rk4", "n_layers": 1},
    "contiformer-linear": {"baseline": partial(LinearBaseline, 7, 6), "weight": 0.5},
    "contiformer-columns": {
        "dim_y": 2,
        "dim_covariates": 2,
        "baseline": partial(LinearBaseline, 5, 3),
        "calibration": CALIBRATION,
    },
}
PATHS_CASES: dict[str, dict[str, Any]] = {
    "contiformer-paths": {},
    "contiformer-paths-none": {"dynamics": "none", "n_layers": 1, "distribution": "studentt"},
    "contiformer-paths-columns": {
        "dim_y": 2,
        "dim_covariates": 2,
        "value_average": "last",
        "distribution": "mixture",
        "baseline": partial(LinearPathBaseline, 5, 3),
        "weight": 0.7,
        "calibration": {"inflation": 1.3, "mean_weight": 0.6},
    },
    "contiformer-paths-linear": {"baseline": partial(LinearPathBaseline, 7, 5), "weight": 0.5},
    "contiformer-paths-whole": {"baseline": partial(LinearPathBaseline, 7, 6), "weight": 1.0},
    "contiformer-paths-gaussian": {"baseline": GaussianProcessBaseline, "calibration": CALIBRATION},
}
GAPS_CASES: dict[str, dict[str, Any]] = {
    "contiformer-gaps": {"baseline": GaussianProcessBaseline, "calibration": CALIBRATION},
    "contiformer-gaps-columns": {
        "baseline": partial(GaussianProcessBaseline, 2),
        "calibration": CALIBRATION,
        "dim_y": 2,
        "dim_covariates": 2,
        "distribution": "mixture",
    },
}
CONTIFORMERS = {**CONTIFORMER_CASES, **PATHS_CASES, **GAPS_CASES}
# The same for the transformer neural process.
TNP_CASES: dict[str, dict[str, Any]] = {
    "tnp": {},
    "tnp-local": {"attention": "local"},
    "tnp-columns": {"dim_y": 2, "dim_covariates": 2, "distribution": "mixture", "n_layers": 1},
    "tnp-2d": {"dim_t": 2, "scale": "bounded", "distribution": "studentt"},
    "tnp-linear": {"baseline": partial(LinearPathBaseline, 7, 5), "weight": 0.5},
    "tnp-linear-whole": {"baseline": partial(LinearPathBaseline, 5, 3), "weight": 1.0},
    "tnp-linear-columns": {
        "baseline": partial(LinearPathBaseline, 7, 6),
        "weight": 0.7,
        "calibration": {"inflation": 1.3, "mean_weight": 0.6},
        "dim_y": 2,
        "distribution": "studentt",
    },
    "tnp-gaussian": {"baseline": GaussianProcessBaseline, "calibration": CALIBRATION},
}
# The same for the network of points of several series.
UNN_CASES: dict[str, dict[str, Any]] = {
    "unn": {"n_series": 3},
    "unn-deep": {"n_series": 2, "n_layers": 3, "dim_covariates": 2, "distribution": "mixture"},
    "unn-2d": {"dim_t": 2, "rank": 0, "distribution": "studentt"},
    "unn-notes": {
        "history_indicator": False,
        "n_layers": 1,
        "dim_encoding": 0,
        "null": False,
        "residual": False,
        "decay": False,
    },
}
# Networks that predict a target given those before it.
STEPWISE = {**CASES, **TNP_CASES, **UNN_CASES}
PAPER = [name for name, options in CASES.items() if "preset" not in options]


def needs_order(options: dict[str, Any]) -> bool:
    """Whether positions of points matter beside their times: to local attention and to most baselines."""
    made = options["baseline"]() if "baseline" in options else None
    return "attention" in options or isinstance(made, LinearPathBaseline | LinearTwoSidedBaseline)


# Those to whom the positions of points mean nothing, only their times; a solver stops at every point.
FULL = [name for name, options in {**STEPWISE, **CONTIFORMERS}.items() if not needs_order(options)]
FULL = [name for name in FULL if {**STEPWISE, **CONTIFORMERS}[name].get("dynamics") != "mlp"]
# Of these, those whose baseline reads a context in order of time.
GRID = ("contiformer-linear", "contiformer-columns")


def perturbed(build: Callable[[], nn.Module], seed: int) -> nn.Module:
    """Build a network in evaluation mode, no parameter or statistic of which is neutral."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = build()
        with torch.no_grad():
            for parameter in net.parameters():
                parameter.add_(0.2 * torch.randn_like(parameter))
            for norm in (module for module in net.modules() if hasattr(module, "updates")):
                norm.mean.normal_()
                norm.variance.uniform_(2.0, 20.0)
                norm.updates.fill_(1000)
            for linear in (module for module in net.modules() if isinstance(module, LinearBaseline)):
                for buffer in (linear.log_scale, linear.log_optimism, getattr(linear, "weights", None)):
                    if buffer is not None:
                        buffer.add_(0.2 * torch.randn_like(buffer))
    return net.eval()


@dataclass(frozen=True)
class Case:
    """A choice of options, with builders of networks and windows that fit them."""

    name: str
    options: dict[str, Any] = field(hash=False)
    random_window: Callable[..., Window] = field(hash=False)

    @property
    def several_columns(self) -> bool:
        return self.options.get("dim_y", 1) > 1

    def net(self, seed: int = 0, **options: Any) -> Any:
        """Build a tiny network; see :func:`perturbed`."""
        sizes: dict[str, Any] = {"d_model": 8, "n_heads": 2, "dropout": 0.1}
        network: Callable[..., Any]
        if self.name in TNP_CASES:
            network, sizes["n_layers"] = TNPA, 2
        elif self.name in UNN_CASES:
            network, sizes = UNN, {**sizes, "n_layers": 2, "dim_encoding": 4}
        elif self.name in LAM_CASES:
            # Built for one target more than the windows have.
            network, sizes = LAMTransformer, {**sizes, "context_length": 7, "horizon": 6}
        elif self.name in CONTIFORMERS:
            network = ContiFormerPaths if self.name in PATHS_CASES else ContiFormer
            network = ContiFormerGaps if self.name in GAPS_CASES else network
            sizes = {**sizes, "n_layers": 2, "dim_encoding": 4}
        else:
            network = DirectTaylorformer if self.name in DIRECT_CASES else Taylorformer
            sizes = {**sizes, "head_dim": 4, "n_layers": 3, "dim_encoding": 4}
        options = {**sizes, **self.options, **options}
        calibration, baseline = options.pop("calibration", {}), options.pop("baseline", None)

        def build() -> Any:
            net = network(**options) if baseline is None else network(baseline=baseline(), **options)
            net.calibration.set(**calibration)
            return net

        return perturbed(build, seed)

    def window(self, **kwargs: Any) -> Window:
        """Draw windows with the columns, coordinates and covariates of the case."""
        sizes = {
            name: self.options[name] for name in ("dim_y", "dim_t", "dim_covariates") if name in self.options
        }
        if self.name in PATHS_CASES and kwargs.get("times") == "unordered":
            kwargs["times"] = "irregular"  # these draw in order of time
        window = self.random_window(**{**sizes, **kwargs})
        if self.name not in UNN_CASES:
            return window
        g = torch.Generator().manual_seed(7)
        series = torch.randint(self.options.get("n_series", 2), window.y.shape[:2], generator=g)
        return replace(window, series=series)


@pytest.fixture
def numbers() -> Callable[[Distribution], Tensor]:
    """Return the function that lists all parameters of each point's distribution, (B, T, .)."""

    def listed(distribution: Distribution) -> Tensor:
        return torch.cat([p.flatten(2) for p in components(distribution).tensors().values()], -1)

    return listed


@pytest.fixture
def trained() -> Callable[[Any], list[tuple[str, Tensor]]]:
    """Return the function that lists the parameters that gradients train; a linear map has its own fit."""
    return lambda net: [(name, p) for name, p in net.named_parameters() if p.requires_grad]


@pytest.fixture
def build_case(monkeypatch: pytest.MonkeyPatch, make_window: Callable[..., Window]) -> Callable[[str], Case]:
    """Return the builder of a case from its name."""
    # The published code's jitter is drawn anew on every call: here it is a function of the neighbour.
    monkeypatch.setattr(LocalTaylor, "jitter", lambda _, near: 0.01 * torch.sin(1e3 * near))
    return lambda name: Case(name, {**STEPWISE, **ONE_SHOT, **CONTIFORMERS}[name], make_window)


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest, build_case: Callable[[str], Case]) -> Case:
    """Every preset and option of the Taylorformer in turn."""
    return build_case(request.param)


@pytest.fixture(params=STEPWISE)
def stepwise_case(request: pytest.FixtureRequest, build_case: Callable[[str], Case]) -> Case:
    """Every autoregressive network, preset and option in turn."""
    return build_case(request.param)


@pytest.fixture(params=[*STEPWISE, *ONE_SHOT, *CONTIFORMERS])
def any_case(request: pytest.FixtureRequest, build_case: Callable[[str], Case]) -> Case:
    """Every network, preset and option in turn."""
    return build_case(request.param)


@pytest.fixture(params=LAM_CASES)
def lam_case(request: pytest.FixtureRequest, build_case: Callable[[str], Case]) -> Case:
    """Every preset and option of the LAM transformer in turn."""
    return build_case(request.param)


@pytest.fixture(params=PAPER)
def paper_case(request: pytest.FixtureRequest, build_case: Callable[[str], Case]) -> Case:
    """Every option of ``preset="paper"`` in turn."""
    return build_case(request.param)


@pytest.fixture(params=FULL)
def full_case(request: pytest.FixtureRequest, build_case: Callable[[str], Case]) -> Case:
    """Every option with full attention in turn: positions do not matter, as they do in a local window."""
    return build_case(request.param)


@pytest.fixture(
    params=[
        name
        for name in [*PAPER, *TNP_CASES, *UNN_CASES, *CONTIFORMER_CASES, *GAPS_CASES]
        if name in FULL and name not in GRID
    ]
)
def full_paper_case(request: pytest.FixtureRequest, build_case: Callable[[str], Case]) -> Case:
    """Every network and option with full attention in turn, but for ``preset="code"``."""
    return build_case(request.param)


@pytest.fixture(params=["none", "rows", "entries"])
def missing(request: pytest.FixtureRequest) -> str:
    """What the context lacks: nothing, whole points, single entries."""
    return request.param
