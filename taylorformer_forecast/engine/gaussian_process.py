"""The Gaussian process in a network's anchor: fitted before the network is trained, calibrated afterwards."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import islice, product

import torch

from taylorformer_forecast.baselines.gaussian_process import GaussianAnchor
from taylorformer_forecast.core.families import affine
from taylorformer_forecast.core.protocol import training_loss
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.engine.lightning import make_optimizer
from taylorformer_forecast.models.taylorformer import Taylorformer

__all__ = ["calibrate", "fit_anchor"]

TRUSTS = (0.0, 0.33, 0.67, 1.0)
STRETCHES = tuple(1.15**k for k in range(6))  # 1 to 2: a few points can warn, but not reassure
CONFIRMED = 10.0  # targets


def fit_anchor(
    anchor: GaussianAnchor, windows: Iterable[Window], n_steps: int = 150, lr: float = 0.15
) -> float:
    """Maximise the marginal likelihood of whole windows, and leave the parameters fixed.

    A handful of parameters is all there is, so that it neither needs validation nor overfits as networks do.

    Parameters
    ----------
    anchor : GaussianAnchor
        What is fitted, in place.
    windows : iterable of Window
        Scaled windows, as the network sees them.
    n_steps : int, default=150
        Steps of Adam.
    lr : float, default=0.15
        Peak learning rate.

    Returns
    -------
    float
        Negative log-density of a value in the last batch, in nats; NaN without steps.
    """
    anchor.requires_grad_(True)
    optimizer, schedule = make_optimizer(anchor, lr, n_steps, weight_decay=0.0)
    loss = torch.tensor(float("nan"))
    for window in islice(windows, n_steps):
        optimizer.zero_grad()
        loss = anchor.loss(window)
        loss.backward()
        optimizer.step()
        schedule.step()
    anchor.requires_grad_(False)
    return loss.item()


@torch.no_grad()
def calibrate(checks: Sequence[tuple[Taylorformer, Sequence[Window]]]) -> tuple[float, float, float]:
    """Choose how far networks are trusted beyond their anchors, and how wide their distributions are.

    The numbers minimise the loss of targets that training has not seen: a network overfits the others. Few
    targets say little about the width, so that it counts as if a further ten had confirmed it.

    Parameters
    ----------
    checks : sequence of (Taylorformer, sequence of Window)
        Networks with a Gaussian anchor, in evaluation mode, and scaled batches for each, with targets in
        random order that were hidden when it was trained. What the networks' anchors trust is lost.

    Returns
    -------
    trust, mean_trust, stretch : float
        For a network that is trained like these, see
        :class:`~taylorformer_forecast.baselines.gaussian_process.GaussianAnchor`.
    """
    choices = product(TRUSTS, TRUSTS, STRETCHES)
    loss = {choice: CONFIRMED * math.log(choice[-1]) ** 2 for choice in choices}
    for net, windows in checks:
        assert net.gaussian is not None
        for window, trust in product(windows, TRUSTS):
            net.gaussian.set_trust(trust, 1.0, 1.0)
            found, anchor = net(window), net.gaussian(window)[0][:, window.n_context :]
            mean, n_observed = found.mean, float(window.targets[1].sum())
            for mean_trust, stretch in product(TRUSTS, STRETCHES):
                moved = torch.lerp(anchor, mean, mean_trust) - stretch * mean
                wider = affine(found, moved, torch.full_like(mean, stretch))
                loss[trust, mean_trust, stretch] += n_observed * training_loss(wider, window).item()
    return min(loss, key=loss.__getitem__)
