"""A budget of processor time, which other work on the machine does not eat up."""

from __future__ import annotations

import time

from pytorch_lightning.callbacks import Timer
from pytorch_lightning.trainer.states import RunningStage

__all__ = ["ProcessorTimer"]


class ProcessorTimer(Timer):
    """Lightning's timer, which is behind ``max_time``, with the processor's clock.

    Parameters
    ----------
    seconds : float
        Processor time until training is stopped.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(duration={"seconds": seconds}, verbose=False)
        self._begin: float | None = None

    def on_train_start(self, *args: object) -> None:
        """Start the clock."""
        self._begin = time.process_time()

    def time_elapsed(self, stage: str = RunningStage.TRAINING) -> float:
        """Processor seconds since the start of training."""
        return 0.0 if self._begin is None else time.process_time() - self._begin
