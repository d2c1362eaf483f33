"""What a network is asked for: series, X as far as it is known, and the steps that paths pass through."""

from __future__ import annotations

import numpy as np
from sktime.datatypes import update_data

from taylorformer_forecast.sktime._frames import instances, of_instance
from taylorformer_forecast.sktime._host import Host
from taylorformer_forecast.sktime._requests import Request


class NetworkRequests(Host):
    """Requests of the network of a fitted :class:`BaseTorchForecaster`."""

    def _of_every_instance(self, fh, ahead):
        """What a network is asked for: requests of all instances; keys of all rows; stamps by instance."""
        requests, keys, stamps = [], [], []
        for key, y, known_X in self._known():
            asked = self._asked(fh, y.index)
            if self._shown_scaler is not None:
                known_X = self._exogenous(key, known_X, ahead, asked, y.index[-1])
            y = y.iloc[: np.flatnonzero(y.notna().any(axis=1))[-1] + 1]  # what follows is to be forecast
            requests.append(self._request(key, y, known_X, asked))
            keys += [key] * len(asked)
            stamps.append(asked)
        return requests, keys, stamps

    def _exogenous(self, key, known, ahead, asked, last):
        """X of one instance: as stored, joined by what predict was given for other times and the future."""
        stored = asked.isin(known.index)
        if ahead is None:
            if self._scaler.n_ahead and not stored.all():
                self._scaler.check(None, "predict")
            return known
        if key not in ahead:
            if self._scaler.n_ahead == 0:
                return known
            raise ValueError(f"X has no rows{of_instance(key)}")
        new = ahead[key]
        new = new[(new.index > last) | ~new.index.isin(known.index)]
        return update_data(known, new) if len(new) else known

    def _request(self, key, y, X, asked):
        """What to predict of one instance; paths pass through every regular step up to the last."""
        axis, last = self._axis, y.index[-1]
        is_past = np.asarray(asked <= last)
        future = asked[~is_past]
        path, path_t, position, path_y = future, np.empty(0), np.empty(0, dtype=int), None
        if len(future):
            given = self._given_after(key, last)
            if given is None or given.empty:
                path = self._ahead(y, future[-1]).union(future)
            else:  # paths reach the last known value, and pass through all
                upto = max(future[-1], given.index[-1])
                path = self._ahead(y, upto).union(future).union(given.index)
                path_y = self._rest_of_given(key, given[y.columns].reindex(path), X)
            if self._shown_scaler is not None and X is not None:
                self._scaler.check_known(X.reindex(path.intersection(X.index)), "predict")
            path_t = axis.numbers(path)
            position = path.get_indexer(future)
        if self.spec.regular:
            off = asked.difference(axis.between(y.index[0], max(last, asked[-1]), y.index))
            if len(off):
                raise ValueError(
                    f"fh asks for {off[0]}, which is not a step of the regular grid of y{of_instance(key)}"
                )
        return Request(
            self._columns(key, y, X),
            axis.numbers(asked),
            self._covariates(asked[is_past], X, key, target=True) if is_past.any() else None,
            is_past,
            path_t,
            self._covariates(path, X, key, target=True) if len(future) else None,
            position,
            path_y,
        )

    def _ahead(self, y, upto):
        """Regular steps after the last row of y, without weekdays that never have one."""
        stamps = self._axis.between(y.index[-1], upto, y.index, opened=True)
        return stamps[stamps > y.index[-1]]

    def _given_after(self, key, last):
        """Known values of an instance after its last observation."""
        given: dict = {} if self._given is None else dict(instances(self._given))
        return given[key][given[key].index > last] if key in given else None
