"""Training on two devices: two processes of the CPU, which exchange gradients by gloo."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import warnings; warnings.filterwarnings("ignore")
import torch; torch.set_num_threads(1)
from sktime.datasets import load_airline
from taylorformer_forecast.sktime import TaylorformerForecaster

if __name__ == "__main__":
    devices = {"accelerator": "cpu", "devices": 2, "strategy": "ddp"}
    sizes = {"context_length": 12, "d_model": 8, "max_steps": 3, "num_epochs": None, "num_samples": 5}
    model = TaylorformerForecaster(
        strategy="train", device="cpu", random_state=0, verbose=False, trainer_kwargs=devices, **sizes
    )
    model.fit(load_airline()[:60], fh=[1, 2])
    weights = torch.cat([p.detach().flatten().double() for p in model.network_.parameters()])
    numbers = model.training_["steps"], weights.sum().item(), weights.square().sum().item()
    print("trained " + " ".join(map(str, numbers)) + "\\n", end="", flush=True)  # a line of each process
    torch.distributed.barrier()  # the first process ends the others
"""


def test_processes_of_one_training_have_the_same_weights(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    paths = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")]
    paths = os.pathsep.join(filter(None, paths))
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
    run = subprocess.run(
        [sys.executable, str(program)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    first, second = [line for line in run.stdout.splitlines() if line.startswith("trained")]
    assert first == second
    assert first.split()[1] == "3"
