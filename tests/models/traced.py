"""Trace the default networks of all models: exported for any number of windows, compiled in one piece.

A script, as the tracer cannot see through the checks of shapes that tests have::

    python tests/models/traced.py
"""

import torch
from torch import Tensor, nn

from taylorformer_forecast.core.window import Window
from taylorformer_forecast.models import specs
from taylorformer_forecast.models.spec import ModelSpec, Task

SPECS = {s.name.split("-")[0].split()[0]: s for s in vars(specs).values() if isinstance(s, ModelSpec)}
N_CONTEXT, HORIZON = 12, 4


class OnTensors(nn.Module):
    """Means of all targets and the loss, from plain tensors."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, t: Tensor, y: Tensor, observed: Tensor, covariates: Tensor) -> tuple[Tensor, Tensor]:
        """Make the window and predict."""
        window = Window(t, y, observed, covariates, n_context=N_CONTEXT)
        return self.net(window).mean, self.net.loss(window)


def windows(n_windows: int, n_columns: int) -> tuple[Tensor, ...]:
    """Windows on a regular grid, of which a part was not observed."""
    generator = torch.Generator().manual_seed(n_windows)
    n = N_CONTEXT + HORIZON
    y = torch.randn(n_windows, n, n_columns, generator=generator)
    observed = torch.rand(y.shape, generator=generator) < 0.8
    t = (torch.arange(1.0, n + 1) / N_CONTEXT - 1.0).repeat(n_windows, 1)
    return t, y, observed, torch.randn(n_windows, n, 2, generator=generator)


def main(name: str) -> None:
    """Compare graphs with the network itself."""
    print(name, flush=True)
    torch.manual_seed(0)
    n_columns = 2 if SPECS[name].shares_windows else 1
    task = Task(N_CONTEXT, HORIZON, n_covariates=2, n_columns=n_columns)
    module = OnTensors(SPECS[name].build(task, **SPECS[name].options({"d_model": 8, "n_heads": 2}))).eval()
    batch = {0: torch.export.Dim.DYNAMIC}
    program = torch.export.export(module, windows(3, n_columns), dynamic_shapes=(batch,) * 4).module()
    more = windows(7, n_columns)
    torch.testing.assert_close(program(*more), module(*more))
    found, weights = [], [p for p in module.parameters() if p.requires_grad]
    for run in (module.train(), torch.compile(module, fullgraph=True, backend="eager")):
        torch.manual_seed(0)  # of dropout
        loss = run(*more)[1]
        found.append([loss, *torch.autograd.grad(loss, weights, materialize_grads=True)])
    torch.testing.assert_close(*found)


if __name__ == "__main__":
    for each in SPECS:
        main(each)
