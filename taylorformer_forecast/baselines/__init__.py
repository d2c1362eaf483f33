"""Baseline forecasts: what is fitted in closed form, and what networks correct.

Shape legend of series, used here and in ``engine``; letters of windows are those of ``core.window``::

    B  series in a batch           M  members of the combination
    n  values of a series          F  their families or groups
    H  horizon, steps ahead        S  sample paths, or members beside smoothing
    K  origins, streams of members, or values of a support: docstrings say which
    R  sizes of demand, delays of covariates, or rows of a forecast: these too

There are three baselines, and what they have in common is in ``base``.

The statistical combination::

    forecast        steps 3 to 10 below, quantiles and paths
    combination     its first part: members, their weights and errors from every origin
    members         all of them side by side
    families        what each family forecasts
    smoothing       levels and trends on a grid of parameters
    seasonal        indices of a season, seasonal naive, places that are always zero
    autoregression  how changes since a season ago go on
    weights         of members, by their losses
    errors          their scale, shape and asymmetry
    tails           how far each side reaches, and its tail
    dependence      of errors along a path
    bounds          of forecasts and of values
    demand          intermittent series
    few_values      one value or two
    zeros           which are demand, outages, or no values yet
    outliers        in view of both sides; large steps
    wrong_values    what only later values show to be wrong
    winsorise       outliers in view of the past and the next value
    new_level       levels of the last few values
    calendar        working days, days of the month, holidays
    analogues       what followed windows like the latest one; averaged with networks

The linear one::

    linear          all steps ahead from a context
    linear_path     and along a path, from one value to the next
    linear_fit      for all series together, or for each
    ridge           regression for many penalties
    shrinkage       what it is shrunk to
    residuals       its errors
    neighbour       the value at the nearest neighbour, of the paper, in its place

The Gaussian process is in ``gaussian_process``.

A statistical forecast is made in this order. ``engine.statistics.forecast`` has the first part, and the last:

1. Wrong values become missing; negative values that are next to nothing become zero.
2. A minimum that recurs and what the calendar adds are taken off.
3. ``combination``: zeros before the first other value are left out, and outliers are winsorised.
4. Members are fitted and weighted, from every origin.
5. Level and scale of their errors follow, without places that are always zero.
6. A doubtful end, a shift or a new level widens the last scale.
7. ``forecast``: intermittent demand has distributions of its own.
8. Asymmetry of the errors, reach and tails of each side; then the correction by a network.
9. Ranges of quantiles; places that are always zero; widths from one value or two.
10. Dependence of errors along a path. Paths and quantiles are taken here.
11. What was taken off is put back, and bounds of the values hold.
12. Pieces between quantiles make the distribution.
13. Intermittent demand follows its season; exceptions from a constant are put beside it.
"""
