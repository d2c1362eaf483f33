"""Images of digits and letters, and windows of their pixels.

Images are scikit-learn's or EMNIST's, in classes that are trained on or not. Times of a window have two
coordinates, row and column of a pixel in [-1, 1]; values are grey levels in [-0.5, 0.5]. Which pixels are
shown, which are asked for and in which order is random.
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor

from taylorformer_forecast.core.window import Window

__all__ = ["BLACK", "Protocol", "Task", "ask", "batch", "emnist", "episodes", "read_idx", "scikit_digits"]

BLACK = -0.5  # value of a pixel without ink


@dataclass(frozen=True)
class Protocol:
    """How many pixels are shown and asked for.

    Parameters
    ----------
    n_context, n_targets : tuple of int
        Least and largest number, both included; numbers are uniform between them.
    """

    n_context: tuple[int, int]
    n_targets: tuple[int, int]


@dataclass(frozen=True)
class Task:
    """Images to train on and to be tested on.

    Parameters
    ----------
    name : str
        What they are.
    shape : tuple of int
        Rows and columns of an image.
    train, seen, unseen : Tensor of shape (images, pixels)
        Values in [-0.5, 0.5]: for training; others of the same classes; and of classes never trained on.
    protocol : Protocol
        Pixels shown and asked for.
    """

    name: str
    shape: tuple[int, int]
    train: Tensor
    seen: Tensor
    unseen: Tensor
    protocol: Protocol

    @property
    def grid(self) -> Tensor:
        """Row and column of every pixel in [-1, 1], (pixels, 2), in the order of the values."""
        return torch.cartesian_prod(*(torch.linspace(-1, 1, size) for size in self.shape))

    def first(self, n: int) -> Task:
        """The task with the first ``n`` images of every set."""
        return replace(self, train=self.train[:n], seen=self.seen[:n], unseen=self.unseen[:n])

    def about(self) -> dict:
        """What results are to be compared within."""
        sizes = {name: len(getattr(self, name)) for name in ("train", "seen", "unseen")}
        protocol = {name: list(ends) for name, ends in asdict(self.protocol).items()}
        return {"name": self.name, **protocol, "images": sizes}


def scikit_digits() -> Task:
    """Return scikit-learn's 8 x 8 digits: 0 to 6, of which 1000 for training; 7 to 9 unseen."""
    data = load_digits()
    values = torch.tensor(data.images.reshape(len(data.images), -1) / 16 - 0.5, dtype=torch.float32)
    known = np.random.default_rng(0).permutation(np.flatnonzero(data.target < 7))
    return Task(
        "scikit-learn's digits",
        (8, 8),
        values[known[:1000]],
        values[known[1000:]],
        values[data.target >= 7],
        Protocol((3, 20), (32, 32)),
    )


def read_idx(path: Path) -> np.ndarray:
    """Read an array of bytes in the format of MNIST's files.

    Parameters
    ----------
    path : Path
        The file; compressed if its name ends in ``.gz``.

    Returns
    -------
    np.ndarray
        Of type uint8.

    Raises
    ------
    ValueError
        If the file is something else, or incomplete.
    """
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    zeros, kind, n_axes = struct.unpack_from(">HBB", raw)
    if zeros != 0 or kind != 8:
        raise ValueError(f"{path} is not an idx file of bytes")
    shape = struct.unpack_from(f">{n_axes}I", raw, 4)
    body = np.frombuffer(raw, np.uint8, offset=4 + 4 * n_axes)
    if body.size != np.prod(shape):
        raise ValueError(f"{path} should hold {' x '.join(map(str, shape))} bytes, but has {body.size}")
    return body.reshape(shape)


def emnist(folder: Path) -> Task:
    """Return EMNIST balanced from its files: digits for training, letters unseen.

    Parameters
    ----------
    folder : Path
        Where the four files ``emnist-balanced-{train,test}-{images-idx3,labels-idx1}-ubyte`` are, compressed
        (``.gz``) or not.

    Returns
    -------
    Task
        Images of 28 x 28 pixels, upright. Classes 0 to 9 are trained on (the training files) and seen (the
        test files); classes 10 to 46 of the test files are unseen. Numbers of pixels are those of the
        Taylorformer paper, appendix A.2.

    Raises
    ------
    FileNotFoundError
        If a file is missing.
    ValueError
        If images and labels do not fit.
    """
    parts = {}
    for part in ("train", "test"):
        arrays = []
        for what in ("images-idx3", "labels-idx1"):
            name = f"emnist-balanced-{part}-{what}-ubyte"
            found = [path for path in (folder / name, folder / f"{name}.gz") if path.exists()]
            if not found:
                raise FileNotFoundError(f"{folder} has neither {name} nor {name}.gz")
            arrays.append(read_idx(found[0]))
        images, labels = arrays
        if images.ndim != 3 or len(images) != len(labels):
            raise ValueError(f"{folder}: {part} has images of shape {images.shape}, but {len(labels)} labels")
        parts[part] = images.swapaxes(1, 2), labels  # the files hold columns before rows

    def values(part: str, letters: bool) -> Tensor:
        images, labels = parts[part]
        chosen = images[(labels >= 10) == letters]
        return torch.from_numpy(chosen.reshape(len(chosen), -1) / np.float32(255) - np.float32(0.5))

    return Task(
        "EMNIST balanced",
        parts["train"][0].shape[1:],
        values("train", False),
        values("test", False),
        values("test", True),
        Protocol((6, 200), (3, 197)),
    )


# ---- pixels that are shown and asked for ------------------------------------------------------------------


def ask(task: Task, images: Tensor, g: torch.Generator) -> tuple[Window, Tensor]:
    """Show and ask for random pixels of images, equally many of each.

    Parameters
    ----------
    task : Task
        Grid and protocol.
    images : Tensor of shape (B, P)
        The images.
    g : torch.Generator
        Source of randomness.

    Returns
    -------
    window : Window
        Places and values of the pixels, those shown first.
    order : int Tensor of shape (B, N)
        Which pixels they are.
    """
    least, most = zip(task.protocol.n_context, task.protocol.n_targets, strict=True)
    n_context, n_targets = (
        int(torch.randint(low, high + 1, (), generator=g)) for low, high in zip(least, most, strict=True)
    )
    order = torch.argsort(torch.rand(images.shape, generator=g), 1)[:, : n_context + n_targets]
    return Window(task.grid[order], images.gather(1, order)[..., None], n_context=n_context), order


def batch(task: Task, size: int, seed: int, step: int) -> Window:
    """Training batch of a step: the same whenever it is asked for."""
    g = torch.Generator().manual_seed(10**7 * seed + step)
    return ask(task, task.train[torch.randint(len(task.train), (size,), generator=g)], g)[0]


def episodes(
    task: Task, images: Tensor, repeats: int, size: int = 8
) -> Iterator[tuple[int, Tensor, Window, Tensor]]:
    """Test windows: every image ``repeats`` times, in groups that share their numbers of pixels.

    Yields
    ------
    repeat, rows : int, int Tensor
        Which time and which images; then their windows and orders (:func:`ask`). The same on every call.
    """
    g = torch.Generator().manual_seed(0)
    for repeat in range(repeats):
        for rows in torch.randperm(len(images), generator=g).split(size):
            yield repeat, rows, *ask(task, images[rows], g)
