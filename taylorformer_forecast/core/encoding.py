"""Continuous-time positional encoding."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn


class TimeEncoding(nn.Module):
    """Sines and cosines of real-valued times, for each time coordinate.

    Wavelengths run geometrically from ``time_min`` to ``100 * time_max``. For each coordinate there is a
    block of sines followed by a block of cosines (Taylorformer paper, eq. 17 and 18, with the factor 100
    and the block order of the authors' code).

    Parameters
    ----------
    dim : int
        Width for each time coordinate, even.
    time_min, time_max : float
        Shortest time difference and largest time that matter, in the units of ``t``.

    Raises
    ------
    ValueError
        If ``dim`` is odd.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.encoding import TimeEncoding
    >>> TimeEncoding(32)(torch.zeros(2, 5, 1)).shape
    torch.Size([2, 5, 32])
    """

    wavelength: Tensor

    def __init__(self, dim: int, time_min: float = 0.1, time_max: float = 1.0) -> None:
        super().__init__()
        if dim % 2:
            raise ValueError(f"dim_encoding={dim} must be even")
        ratio = 100.0 * time_max / time_min
        exponent = torch.arange(dim // 2, dtype=torch.float64) * (2.0 / dim)
        # Rounded to float32 in every precision, so that float64 runs reproduce float32 ones.
        wavelength = (time_min * ratio**exponent).to(torch.float32).to(torch.get_default_dtype())
        self.register_buffer("wavelength", wavelength, persistent=False)

    def forward(self, t: Float[Tensor, "B N X"]) -> Float[Tensor, "B N F"]:
        """Encode times; the result has width ``X * dim``."""
        angle = t[..., None] / self.wavelength  # (B, N, X, dim / 2)
        return torch.cat([angle.sin(), angle.cos()], -1).flatten(-2)
