"""Training sets of darts: of what time their samples are, and windows by that time."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from darts import TimeSeries, concatenate
from darts.utils.data import ShiftedTorchTrainingDataset
from darts.utils.data.torch_datasets.inference_dataset import TorchInferenceDataset
from darts.utils.data.torch_datasets.utils import TorchInferenceSample
from darts.utils.utils import n_steps_between
from jaxtyping import Int
from torch import Tensor

from taylorformer_forecast.core.window import Window
from taylorformer_forecast.darts._windows import BatchWindows


def samples_by_weight(dataset: Sequence[Any], most: int, n_targets: int) -> tuple[list[Any], int]:
    """Samples of a training set in their order, and the number of those in a row that share targets.

    Evenly spaced ones, each as often as its share of the weights of all says: fits without gradients take
    the weights into account that way.

    Parameters
    ----------
    dataset : sequence of TorchTrainingSample
        The training set.
    most : int
        Samples at most.
    n_targets : int
        Targets of a sample.

    Raises
    ------
    ValueError
        If all weights are zero, or one is missing.
    """
    stride = -(-len(dataset) // most)
    samples, embargo = [dataset[i] for i in range(0, len(dataset), stride)], -(-n_targets // stride)
    if samples[0].sample_weight is None:
        return samples, embargo
    total = np.cumsum([float(np.mean(sample.sample_weight)) for sample in samples])
    if np.isnan(total[-1]):
        raise ValueError("sample_weight has missing values")
    if not total[-1] > 0:
        raise ValueError("sample_weight has no positive weight")
    places = (np.arange(len(samples)) + 0.5) * total[-1] / len(samples)
    chosen = np.searchsorted(total, places)
    last = np.searchsorted(chosen, chosen + embargo)  # the first that shares no target with each
    return [samples[i] for i in chosen], int((last - np.arange(len(chosen))).max())


def sample_places(dataset: Sequence[Any], samples: Int[Tensor, " n"], n_targets: int) -> Int[Tensor, "n 3"]:
    """Number of each sample of a training set, row of its first target, length of its series.

    Of a series that is shorter than others darts takes samples more than once; they get the number of the
    first of them. There are no places in a dataset that does not tell of what time its samples are.
    """
    if not isinstance(dataset, ShiftedTorchTrainingDataset):
        return torch.empty(0, 3, dtype=torch.long)
    most = dataset.max_samples_per_ts
    lengths = torch.tensor([len(series) for series in dataset.series])
    series = samples // most
    length = lengths[series]
    available = (length - dataset.size_of_both_chunks) // dataset.stride + 1
    back = (samples - series * most) % available.clamp_max(most)  # the latest comes first
    return torch.stack([series * most + back, length - back * dataset.stride - n_targets, length], -1)


def check_starts(dataset: Any, part: str = "") -> None:
    """Raise a ValueError if covariates start after the first sample of a dataset to train on.

    The names of its parameters start with ``part``. A dataset that does not tell of what time its samples are
    is not checked.
    """
    if not isinstance(dataset, ShiftedTorchTrainingDataset):
        return
    for name in ("past_covariates", "future_covariates"):
        given = getattr(dataset, name) or ()
        for number, (series, one) in enumerate(zip(dataset.series, given, strict=False)):
            spare = max(len(series) - dataset.size_of_both_chunks, 0)
            back = min(spare // dataset.stride, dataset.max_samples_per_ts - 1)
            first, start = series.time_index[spare - back * dataset.stride], one.start_time()
            if start > first:
                of = f"number {number} of " * (len(dataset.series) > 1) + part + name
                raise ValueError(
                    f"{of} starts at {start}, but the first sample of {part}series at {first}: give it from "
                    f"there on, or drop what {part}series has before: drop_before({start!r}, keep_point=True)"
                )


class WholePast(TorchInferenceDataset):
    """Samples of an inference dataset with more of a series' past, which statistical forecasts see.

    So do networks where values are missing at the end. Covariates reach back as far. Where the past of any is
    shorter, missing values stand in front.

    Parameters
    ----------
    dataset : TorchInferenceDataset
        The dataset.
    longest : int
        Values of the past, if these are more than those of the dataset.
    between : bool, default=False
        Whether future covariates begin right after the past, also where targets are shifted.
    """

    def __init__(self, dataset: Any, longest: int, between: bool = False) -> None:
        super().__init__()
        self.near, self.past = dataset, copy.copy(dataset)
        self.past._index_memory = {}  # of places, which change
        for name in ("past_covariates", "future_covariates"):
            if (given := getattr(dataset, name)) is not None:
                pairs = zip(dataset.series, given, strict=True)
                setattr(self.past, name, [_from_the_start(one, series) for series, one in pairs])
        self.past.input_chunk_length = max(longest, dataset.input_chunk_length)
        self.names = ["past_target", "past_covariates", "historic_future_covariates"]
        if between:
            self.names.append("future_covariates")
            self.past.output_chunk_length = dataset.output_chunk_shift + max(
                dataset.n, dataset.output_chunk_length
            )
            self.past.output_chunk_shift = 0

    def __len__(self) -> int:
        return len(self.near)

    def __getitem__(self, index: int) -> TorchInferenceSample:
        past = self.past[index]
        return replace(self.near[index], **{name: getattr(past, name) for name in self.names})


def longest_gap(series: Sequence[TimeSeries], at_the_end: bool) -> int:
    """Steps of the longest run of missing values of a component, or of the longest run at an end."""
    longest = 0
    for one in series:
        missing = np.isnan(one.all_values(copy=False)).all(2)
        if missing[-1].any() if at_the_end else missing.any():
            number = np.arange(1, len(missing) + 1)[:, None]
            runs = number - np.maximum.accumulate(np.where(missing, 0, number))
            longest = max(longest, int((runs[-1] if at_the_end else runs).max()))
    return longest


def _from_the_start(covariates: TimeSeries, series: TimeSeries) -> TimeSeries:
    """Covariates from the start of a series at the latest, missing values in front."""
    late = n_steps_between(covariates.start_time(), series.start_time(), series.freq)
    if late <= 0:
        return covariates
    times = series.time_index[:late]  # counting back from an opening hour, pandas misses these
    empty = np.full((late, covariates.n_components), np.nan, covariates.dtype)
    return concatenate([TimeSeries(times, empty[..., None], covariates.components), covariates])


class DatasetWindows:
    """Windows of a training set by their time, named and cut as those of a ``WindowMaker`` are.

    A window is named by its component and the number of its sample. All have whole contexts. There are none
    of a dataset that does not tell of what time its samples are.

    Parameters
    ----------
    module : BatchWindows
        Makes windows, of one column each, from samples.
    dataset : sequence of TorchTrainingSample
        The training set.
    collate : callable
        Makes batches of samples.
    """

    def __init__(self, module: BatchWindows, dataset: Sequence[Any], collate: Callable[..., Any]) -> None:
        self.module, self.dataset, self.collate = module, dataset, collate
        self.n_context = module.input_chunk_length
        self.n_targets, self.n_components = module.output_chunk_length or 1, len(module.floor)
        # Number of each sample, row of its first target, length of its series; none of them twice.
        self.places = sample_places(dataset, torch.arange(len(dataset)), self.n_targets).unique(dim=0)

    def starts(self, min_context: int, skip: float = 0.0, keep: float = 1.0) -> Tensor:
        """Windows whose first target lies between fractions of its series, those of one component together.

        Parameters
        ----------
        min_context : int
            Of no effect: all contexts are whole.
        skip, keep : float
            The fractions.

        Returns
        -------
        int Tensor of shape (n, 2)
            Component and number of the place of each.
        """
        first, length = self.places[:, 1], self.places[:, 2].double()
        inside = (first >= torch.ceil(skip * length)) & (first < torch.floor(keep * length))
        return torch.cartesian_prod(torch.arange(self.n_components), inside.nonzero()[:, 0])

    def windows(self, starts: Tensor, last: float = 1.0) -> tuple[Window, None]:
        """Scaled windows in single precision; targets beyond the fraction ``last`` of theirs are hidden."""
        numbers, inverse = starts[:, 1].unique(return_inverse=True)
        samples = []
        for row, first, length in self.places[numbers].tolist():
            sample = self.dataset[row]
            target = np.array(sample.future_target)
            target[max(0, math.floor(last * length) - first) :] = np.nan
            samples.append(replace(sample, future_target=target))
        window = self.module.training_windows(samples, self.collate)
        window = window.map(lambda v: v.cpu().float() if v.is_floating_point() else v.cpu())
        return window.rows(inverse * self.n_components + starts[:, 0]), None
