"""Every number that shapes a forecast and is no parameter.

The lowest layer, which imports nothing. Behind every number stands what it is, and where it comes from:

- *published*: a paper or a common textbook has it;
- *by definition*: it follows from what the number is;
- *measured*: other values were tried, and forecasts were worse or the same;
- *by hand*: chosen for good reasons, and no other value was recorded.

Tolerances of rounding, orders of quadrature, and what bounds time or memory alone, stay beside their use.
"""

# --- Families of distributions -----------------------------------------------------------------------------
SCALE_FLOOR = 1e-3  # of a predicted scale; published: the likelihood of the Taylorformer adds it
LARGEST_LOG_SCALE = 20.0  # of a predicted scale: far values of X would make it infinite; by hand
QUANTILE_LEVELS = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)  # symmetric; by hand
MIN_DF = 2.1  # degrees of freedom: the deviation is at most 4.6 scales; by hand
INITIAL_DF = 12.0  # before training: nearly Gaussian, so that early paths do not jump; by hand
NEARLY_NORMAL_DF = 1e3  # degrees of freedom that stand for a Gaussian distribution; by hand

# --- Linear baseline: ridge regression, shrunk to simple forecasts -----------------------------------------
LARGEST_FULL_MAP = 2**20  # numbers of a full map; larger maps have a low rank; by hand
LOW_RANK = 256  # of those; by hand
RIDGE_PENALTIES = tuple(10.0 ** (k / 2) for k in range(-10, 6))  # to choose from, per window; by hand
MOST_SEARCHED_SERIES = 32  # the longest ones, whose values are searched for seasons; by hand
MOST_OWN_MAPS = 32  # series that have a map of their own; by hand
N_RIDGE_BLOCKS = 4  # of the cross-validation; by hand
MIN_RIDGE_WINDOWS = 2 * N_RIDGE_BLOCKS  # of a fit: two in a block; by hand
LEAST_SEEN = 0.5  # part of a context that is observed, in windows of a fit where there are enough; by hand
FARTHEST_TARGET = 20.0  # deviations of the context; targets beyond are outliers or shifts; by hand
N_ERROR_LAGS = 8  # earlier errors that the next one follows from; by hand
ERROR_LAG_PENALTY = 1e-3  # of the weights of those, in mean squares of the errors; by hand
POOLED_ERROR_COUNT = 4  # windows that the errors of all steps together count for; by hand
SEASON_NUMBERS = 64 * 336  # in contexts that show a season by which gaps are filled; by hand
MULTIPLE_OF_SEASON = 1.1  # changes in a season, in those of a multiple as near; measured: gaps lose 3 % less
SEASONAL_GAP = 0.5  # square of what changes in a season, in that of other times; by hand
DEVIATION_DECAY = 0.9  # a step, of a deviation from the season before; by hand
TARGET_LEVELS = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)  # weights of a new value in the level; by hand
TARGET_SLOPES = (0.0, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0)  # weights of a new slope in the trend; by hand
TARGET_DAMPINGS = (0.7, 0.8, 0.9, 0.95, 0.98, 1.0)  # of the trend, in a step; by hand

# --- Statistical forecasts: members ------------------------------------------------------------------------
SMOOTHING_LEVELS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0)  # of a new value; measured: M3 gains nothing by more
TREND_LEVELS = (0.2, 0.4, 0.7, 1.0)  # with a trend of those slopes and dampings; measured: more overshoot
TREND_SLOPES = ((0.1, 0.9), (0.3, 0.9), (0.1, 0.98), (0.02, 1.0))  # published: Gardner (2006)
UNDAMPED_PRIOR = 0.01  # of the last, for straight lines that errors prove; measured: with 1 M3 is .1 % worse
FLAT_SLOPE_COUNT = 1.0  # values without a slope, seen before the first: two points make no trend; by hand
THETA_SLOPE = 0.75  # of the slope of all values; measured: .5, as published, is .4 % worse on M3
# Steps; what longer seasons lose before they are known counts in that part; measured: 12, trends are missed.
DOUBTED_SEASON = 3
SEASONAL_DOUBT = 5.0  # less in their log prior, times what is forgiven; measured: with 2 M3 is .2 % worse
WAKING_CYCLES = 0.25  # from its first forecast until then; measured: with 0 or 1 hourly loads are 2 % worse
SEASON_DECAY = 0.9  # weight of a season relative to the next; measured: .8 and .95 differ by less than 1 %
INDEX_WIDTH = 0.1  # of a year of days, whose indices are means; measured: .02 and .25 are 1 to 2 % worse
REPEATED_LEVEL = 0.1  # of a new error, where a year repeats without its weeks; measured: .2 is alike
REPETITION_MEMORY = 0.98  # of the last error of a longer season repeated; measured: .95, .995 are .5 % worse
REGRESSION_CYCLES = 8  # of the longest season, before seasonal autoregression; measured: with 5 M3 is alike
LONGEST_REGRESSED_SEASON = 13  # steps of that; measured: with 48 far steps of electricity are a third worse
FADING_LEVELS = (0.02, 0.1)  # of longer ones, whose last error fades; measured: .02 alone loses 2 % on loads
ERROR_MEMORIES = (0.8, 0.95)  # of that error, in a step; measured: .9 alone is 1 % worse on taxis
REGRESSION_MEMORY = 0.8  # of a change, in the next step, where nothing else is known; measured: .95 is worse
REGRESSION_PENALTIES = (0.3, 3.0, 30.0)  # in values; measured: each alone is at most 1 % worse
LARGEST_REGRESSED_CHANGE = 4.0  # mean ones; measured: with 8 an outlier moves airline by 1.4 deviations

# --- Statistical forecasts: weights of members -------------------------------------------------------------
BETWEEN_POWER = 0.2  # of errors, in weights of families; inside one it is 1, of Laplace errors; measured: M3
GROWTH_PRIOR = 0.05  # of steady growth from season to season; measured: with 1 a year of months is 2 % worse
SECOND_CYCLE_POWER = 0.7  # the same in the second cycle; measured: .2 loses 9 % on NN5 after 12 days, 2 on M3
# Seasonal naive has nothing to choose; by hand. Of the last, 1 is worse where growth breaks; measured.
FAMILY_PRIOR = {
    "smoothing": 1.0,
    "theta": 1.0,
    "damped trend": 1.0,
    "seasonal naive": 0.3,
    "seasonal autoregression": 0.3,
}
TREND_COUNT = 5.0  # errors that no trend counts for; measured: few months lose 4 to 15 % without
LOSS_STEP_SPACING = 6  # steps are skipped beyond twice this number; measured: the same forecasts of NN5
MEMBER_LEVEL_POWER = 0.5  # of the level's weight, in the prior: fast levels are more common; by hand
PHASE_RATIO = 3.0  # of losses at a place in a week, that they count; measured: 5 is worse after three weeks
PHASE_SHARE = 0.2  # of losses at the same place in a week, of all; measured: .1 is worse after three weeks

# --- Statistical forecasts: errors -------------------------------------------------------------------------
ERROR_LEVEL_POWERS = (0.5, 0.75, 1.0)  # of a positive forecast that errors grow with; measured: M3, the first
ERROR_LEVEL_EVIDENCE = 6.0  # nats by which another must be better; measured: with 4 M3 yearly is .3 % worse
ERROR_LEVEL_FLOOR = 0.1  # smallest forecast in that, in mean values so far; by hand
SINGLE_VALUE_ERROR = 0.1  # of the first step after a single value, in that value; by hand
ERROR_RECENCY = 2.0  # power of time in the weights of errors; measured: 0 to 2 are alike on M3
LARGEST_PAST_SCALE = 2.0  # of errors, in latest ones; measured: lines have three times the width without
ERROR_GROWTH_POWER = 0.5  # of the step that errors grow with, at first; by definition of a random walk
CURVE_COUNT = 4.0  # errors that the curve of all steps counts for beside those of one step; by hand
SHAPE_LEVELS = (0.2, 0.4, 0.6, 0.8, 0.9)  # levels at which the shape of errors is measured; by hand
NORMAL_SHAPE_COUNT = 100.0  # errors that a normal shape counts for; measured: 20 is worse on M3 monthly
SKEWNESS_COUNT = 20.0  # errors that no skewness counts for; measured: 50 is .1 to .5 % worse on M3
LARGEST_ASYMMETRY = 0.5  # logarithm of a factor of the short side; measured: 1 is alike on M3, .3 worse
LARGEST_SKEWED_ERROR = 5.0  # medians, of one that shows skewness; measured: old shifts count for more at 7
REACH_LEVEL = 0.9  # level at which each side reaches as far as its own errors; by hand
REACH_ERRORS = 3.0  # standard errors, by which they have to differ; measured: with 2 M3 is .1 % worse
TAIL_LEVEL = 0.99  # level at which the tail of each side has a width of its own; by hand
LARGEST_TAIL = 3.0  # factor of that width; by hand
LARGEST_ERROR = 8.0  # mean absolute errors; those beyond are outliers; by hand
MOST_DEPENDENT_STEPS = 8.0  # up to which errors count for less, as they share more steps; by hand
CORRELATION_COUNT = 10.0  # errors that the correlation of a random walk counts for; measured: 20 are alike
LARGEST_CORRELATION = 0.99  # of neighbouring errors; by hand
SHARED_COUNT = 2.0  # horizons that no shared part of errors counts for; measured: 1 to 4 cover totals best

# --- Outliers and bounds: of statistical forecasts, then of a whole series ---------------------------------
OUTLIER_SIZE = 8.0  # mean absolute steps; values beyond are outliers; measured: M3 is forecast alike without
LEVEL_SHIFT_PART = 0.5  # of an outlier's distance, in which another value is a shift of the level; measured
DECIDED_SIZE = 2.0  # steps to which an outlier is moved; measured: M3 after one, 8 have 2 to 7 % more loss
UNDECIDED_SIZE = 4.0  # and one that is the last value; measured: M3 there, 2 steps have 10 to 21 % more loss
FEWEST_SHIFTS = 2  # and for each outlier; then a value beyond is a shift at once; measured: M3
LEVEL_SHIFT_MEMORY = 6  # points since a shift that is not followed; measured: 3 is alike on M3, 12 worse
FEWEST_NEW = 2  # values of a new level; measured: two were covered in one case of fifty if it stays
MOST_NEW = 6  # after which forecasts have followed; measured: jumps of six deviations
NEW_LEVEL_SIZE = 4.0  # mean absolute errors, of each of them; measured: with 3 NN5 is .5 % worse
NEW_LEVEL_HISTORY = 8  # values before them; by hand
NEW_LEVEL_REACH = 0.8  # mean absolute errors to its distance; measured: 80 % intervals cover .76 to .88 then
STEP_SIZE_MEMORY = 20  # steps over which the size of a usual step is averaged; by hand
FIRST_CHECKED_VALUE = 5  # number of the first value that is checked; fewer steps have no usual size; by hand
WHOLE_IN_SINGLE_PRECISION = 2.0**23  # and more: numbers have no fractions; by definition
FEWEST_STEPS = 30  # that show whether they are smaller at low levels; by hand
LEAST_ELASTICITY = 0.25  # of steps to the level, where zero bounds numbers that are not whole; by hand
LARGEST_GROWTH = 2.0  # beyond the largest value, in that value; by hand
RANGE_OVERSHOOT = 1 / 6  # of the range of forecasts, that quantiles leave it by; measured: 99 % intervals
RANGE_MARGIN = 0.2  # of their range, from which on quantiles go slower; measured: .05 to .2 are alike
LONGEST_SCALE = 7  # different values of a scale, as of ratings, which has ends; by hand
SCALE_SHARE = 0.2  # of values, that are an end of one; by hand
RECURRING_RUNS = 5  # times that the largest value was reached, if values stop there; by hand
RECURRING_SHARE = 0.03  # of the values, which it is at least; by hand
NEGLIGIBLE = 0.001  # of the mean size: negative values above it are zeros; by hand
LARGE_STEP = 0.9  # quantile of the steps around a value: one outlier makes two of them large; by hand
STEP_BLOCK = 40  # steps of which it is taken; by hand
LONG_SERIES = 1000  # values; of more than these, usual steps are larger by chance; by hand
SPIKE_SIZES = (4.0, 6.0)  # of an outlier, and in a long series; measured: with 4 there rates are 11 % worse
LAST_OUTLIER_SIZE = 2.0  # steps to which the last two are moved: a shift looks like an outlier there; by hand
MIN_CHECKED_VALUES = 12  # of a series; by hand
LONGEST_RUN = 12  # outliers in a row: more are a shift of the level; by hand
MOST_EXCEPTIONS = 0.05  # share of the values that leave a constant and come back to it; by hand
MOST_OUTLIERS = 0.02  # share of the values; more are a part of the series; by hand
SEASONAL_RUN_SIZE = 3.0  # large steps of a series less its season; measured: dips to .4 of M3 are found
SEASONAL_JUMP = 2.0  # large steps at least, with which such a run begins or ends; by hand
SEASONAL_STEP_PART = 0.8  # of a large step, which is less without a season, if there is one; by hand

# --- Forecasts beyond the horizon of a network -------------------------------------------------------------
ROLLED_GROWTH_POWERS = (0.5, 1.0)  # of the step, of errors: a random walk's, and a trend's; by hand
ROLLED_SLACK = 2.0  # ratio to this growth from which widths are too large; by hand
LINE_REACH = 3.0  # lengths of the past that its line leads ahead; by hand

# --- Statistical forecasts: intermittent demand ------------------------------------------------------------
INTERMITTENT_ZEROS = 0.25  # share of zeros; published: Syntetos and Boylan (2005), a gap of 1.32
OUTAGE_RUN = 10  # zeros in a row that are no demand, if few others are zero; by hand
BROKEN_RUN = 3  # zeros in a row after values that are far from zero; by hand
FEWEST_BEFORE_BROKEN = 12  # of these; by hand
FEW_ZEROS = 0.05  # of the others; by hand
OUTAGE_EDGE = 0.25  # of a usual value, those beside such zeros at least: seasons end slowly; by hand
FEWEST_RUNS = 3  # of zeros or outliers, from which on they may be a part of the series; by hand
CLOSED_SHARE = 0.8  # of whether a value is zero, that a season explains if it says when; by hand
MIN_SEASONAL_CYCLES = 4  # for a season of demand, or a multiple of a calendar cycle; by hand
AWAKE_RUN = 6  # values in a row that are not zero, from which on there may be no more zeros; by hand
ZEROS_CHANCE = 0.001  # of so many zeros or other values, if there were as many zeros as elsewhere; by hand
MOST_LEADING_ZEROS = 4  # that count for this; by hand
FEWEST_OF_NEW = 3  # values after these, from which on none counts, if the values are alike; by hand
LEAST_OF_NEW = 10.0  # smallest of them, if they are whole: smaller counts may be zero again; by hand
DEMAND_DECAYS = (1.0, 0.97, 0.9, 0.8)  # weight of a value relative to the next; by hand
ENDED_DECAY = 0.9  # the largest of these where demand may have ended; by hand
DEMAND_SIZES = (0.3, 1.0, 3.0, 30.0)  # r of variances mean + mean ** 2 / r; the last is near Poisson; by hand
HURDLE_SIZES = (1.0, 30.0)  # r of demand less 1, where there is any; measured: more are alike on parts
DEMAND_PRIOR_REST = 1.0  # its mean, before it was seen; by hand
DEMAND_PRIOR_COUNT = 0.5  # values that the prior mean counts for: the first sale stays possible; by hand
DEMAND_PRIOR_MEAN = 0.2  # of demand that was never seen; by hand
FARTHEST_JUDGED = 12  # steps, half the horizon up to this, by which members are judged; measured: 1 is worse
SMOOTHING_SIZE = 1  # number of the size whose distribution smooths the empirical ones; by hand
SMOOTHING_COUNT = 1.0  # values that it counts for; by hand
DEMAND_CLASSES = 4  # of other values than small counts, by which decays are weighted; by hand
MOST_BINS = 64  # largest count with a bin of its own; other values have so many bins by quantiles; by hand

# --- Effects of covariates, and of the calendar on daily and monthly series ---------------------------------
EFFECT_EVIDENCE = 0.25  # logarithm of how much likelier each value is with slopes from another start; by hand
EFFECT_KNOTS = 4  # values at which the line of a covariate may bend: quintiles; by hand
MOST_CODES = 10  # different values of a covariate whose line does not bend, and that may close; by hand
EFFECT_DELAYS = 7  # steps after which it may still add something; by hand
EFFECT_LEAST_MOVE = 0.5  # deviations of others beside equal values, which say that these have none; by hand
EFFECT_FREE_VARIANCE = 10.0  # of places in the season of one of several series: not shrunk; by hand
EFFECT_ROWS_PER_TERM = 15  # of all series, if lines are to bend, or to count later; by hand
LEAST_LOCAL_DEMAND = 0.05  # level of intermittent demand that covariates multiply, in its means; by hand
FEWEST_DEMAND_CYCLES = 2  # of which demand has a season; measured: 4 are worse on epidemics of two years
DEMAND_SEASON_ERRORS = 4.0  # of chance, until demand has a season; measured: costs .2 % where there is none
LEAST_SEEN_DEMAND = 0.5  # values that places in its season have had, where all were zero; by hand
ALIKE_DEMAND = 1.2  # ratio of means up to which a step ahead varies as past demand did; by hand
FEWEST_ALIKE = 10  # past values that do, the nearest ones; by hand
FARTHEST_DEMAND = 0.9  # mean they may lead to, on the way from the usual one to the largest value; by hand
EFFECT_SPREAD_POWER = 0.75  # of the level with effects, that errors grow with; measured: shops
EFFECT_SPREAD_POWERS = (0.0, 0.25, 0.5, 0.75, 1.0)  # that are tried, around that one; by hand
EFFECT_SPREAD_DOUBT = 0.25  # standard deviation of the power, which few errors do not tell; by hand
LARGEST_EFFECT_SPREAD = 3.0  # factor of errors by that; by hand
LEAST_EFFECT_LEVEL = 0.1  # of the usual level, in that; by hand
EFFECT_OUTLIER = 6.0  # standard deviations, of the largest error that counts; by hand
EFFECT_LONGEST_SEASON = 24  # steps, of which each place has a mean beside covariates; by hand
EFFECT_SEASON_CYCLES = 3  # of values, if it has; by hand
EFFECT_ROWS_PER_LAG = 10  # of the autoregression of the rest, if it has more than three lags; by hand
LEAST_MEMORY = 0.7  # correlation with its last value of a missing covariate that this stands for; by hand
RELEVANCE_DOUBT = 1.0  # terms without effect in each group: t statistics below 2.4 count for nothing; by hand
EASTER_REACH = 6  # days before and after it that may differ from others; by hand
CHRISTMAS_REACH = 8  # the same of Christmas, so that New Year is in it; by hand
CALENDAR_WEEKS = 4  # before and after a day, whose values of the same weekday it is compared with; by hand
CALENDAR_ERROR = 4.0  # standard deviations, of the largest difference that counts; by hand
CALENDAR_OCCURRENCES = 2.0  # of a holiday, beyond which it is unlike others; measured: 1 costs rates 3 %
CALENDAR_ONCE = 0.5  # part of an effect seen once; measured: 1 costs ETT 3 %, but NN5 gains at Christmas
CALENDAR_MIN_VALUES = 60  # of a series, before effects are looked for; by hand
MEAN_MONTH = 30.44  # days; by definition
CALENDAR_DOUBT = 1.05  # of what days of the month explain, beyond which a cycle is none; measured: sines
WORKING_DAYS_CHANCE = 2.0  # F statistic of chance; measured: wrong calendars cost M3 .3 % with 1, .1 with 2
WORKING_DAYS_MOST = 0.7  # of an effect, as a logarithm: twice the value; by hand
WORKING_DAYS_MIN_CHANGES = 24  # of a monthly series, before working days are looked for; by hand

# --- Statistical forecasts: the series ---------------------------------------------------------------------
LONGEST_PAST = 1000  # latest values that a forecast is made from, as time grows with them; by hand
LARGEST_OFFSET = 0.05  # of a step, from the grid of series that count as regular; by hand
SPARSEST_STEPS = 4  # steps for each observation of a series that counts as regular; by hand
MOST_TRIED_SEASONS = 2  # the calendar's first; by hand
LONGEST_TRIED_SEASON = 700  # steps: a year of days, a week of quarters of an hour; by hand
LEAST_PAST_CYCLES = 3  # of a long season that are seen; measured: 4 are worse on taxi rides
MIN_SCALE_VALUES = 3  # before an origin whose errors show a scale; by hand
LOWER_TAIL = (1e-6, 1e-4, 0.001, 0.005, 0.01, 0.025)  # levels of the next, in the tails; by hand
# Levels between which the density of a statistical forecast is constant; by hand.
STATISTICAL_LEVELS = (*LOWER_TAIL, *(k / 20 for k in range(1, 20)), *(1 - p for p in LOWER_TAIL[::-1]))
TAIL_WIDTH = 10.0  # of the outermost pieces of a density, in its central 80 %, at least; by hand

N_ANALOGUES = 8  # of each length; measured: 6 to 12 are alike
MIN_ANALOGUE_LENGTH = 8  # values that are compared; by hand
ANALOGUE_DECAY = 4.0  # of weights within a window, as a logarithm; measured: 0 is worse by 1 %, 6 alike
ANALOGUE_FACTOR = 2.0  # of deviations, at most, by which what followed is multiplied; measured: 4 is worse
ANALOGUE_ODDS = 0.5  # beside others of the same loss; measured: with 1 intervals are too narrow

# --- Pretrained correction of statistical forecasts ---------------------------------------------------------
SEEN_VALUES = 128  # latest values that the network sees; by hand
CORRECTION_SHIFT = 1.5  # largest shift of the network's own, in scales of the step; by hand
LARGEST_RISE = 0.1  # of a forecast, by its correction, where a series ends; measured: .05 to .2 are alike
LOWEST_PART = 0.25  # of earlier values, below which it ends; measured: 3 of 2,829 series of M3 do, .5: 13
CORRECTION_WIDTH = 1.2  # largest logarithm of a factor of the widths; by hand
FARTHEST_FAMILY = 5.0  # scales up to which the forecast of a family is followed; by hand
NEARLY_LINE = 0.9  # correlation with time, where a season seen once is hidden; measured: lines lose 20 % less

# --- Networks ----------------------------------------------------------------------------------------------
NETWORK_WEIGHT = 0.75  # of what a trained Taylorformer adds to its linear baseline; by hand
USUAL_WEIGHT = 0.5  # of what a network adds to a baseline, where its model names no other; by hand
CLASSIFIER_TIMES = 24  # that the linear scores of a classifier read a series at; by hand
LATE_START = 0.25  # of the longest series: median delay of first rows with a common clock; by hand
FARTHEST_READING = 100.0  # median deviations, of values that a classifier sees as they are; by hand
FEW_READINGS = 0.02  # part of the values, until those farther away are what a series does; by hand
LARGEST_SLOPE = 20.0  # deviations in one step; steeper ones count as jumps without a slope; by hand
TNP_EMBEDDING_DEPTH = 4  # linear maps; published: TNP-A

# --- Times -------------------------------------------------------------------------------------------------
SPARSEST_GRID = 10  # steps for each row of a series that is put on a regular grid; by hand
FEW_WEEKDAYS = 20  # dates without any weekend that are taken for weekdays, at least; by hand
LEAST_OPEN_WEEKS = 2  # of a series that show which hours are open; by hand
SHOWN_OPEN_HOURS = 500  # of a frequency of business hours: more than two weeks of them; by hand
LEAST_OPEN = 0.5  # of the days or weeks in which an open step has a value; by hand
LEAST_CLOSED = 0.25  # of a week, in which there are open hours; by hand
DAILY_WEEKDAYS = 5  # with rows, from which on days are counted, as most follow the one before; by definition
CLOSED_CHANCE = 0.01  # that a step of the week has values and none was seen; by hand
OFF_STEP_SHARE = 0.25  # of gaps that are no multiples of the usual one, above which it is no step; by hand
FEWEST_SPARSE_DATES = 5  # on steps of a finer grid; fewer are apart by chance, as after gaps; by hand
N_HARMONICS = 2  # of every cycle; by hand
LEAST_FOUND_CYCLES = 3  # of a season that is found in the values of a series; by hand
LEAST_SEEN_CYCLES = 1  # of a day, week or year, until statistics try it; measured: 2 cost up to a third
MOST_FOUND_SEASONS = 2  # in the values of a series; by hand
NEARLY_USUAL = 0.1  # cycles, by which a season that is found differs from an hour over the series; by hand
MIN_AUTOCORRELATION = 0.3  # at the period of a season that is found in the values; by hand
SHORT_STAYS = 0.1  # part of the stays of values at one level that may be shorter than most; by hand
EXACT_AUTOCORRELATION = 0.9  # at the period of a season of few different values, at most; by hand
SEASON_STANDARD_ERRORS = 2.5  # the same; measured: 2.5 to 3.5 are alike on M3 without its calendar
SEASON_BESIDE_CALENDAR_ERRORS = 5.0  # the same beside a calendar cycle; measured: .5 % of the loss of M3
ALIKE_PEAKS = 0.05  # difference of autocorrelations that count as alike; by hand
ALIKE_PEAK_ERRORS = 2.0  # the same in standard errors, if that is more; by hand
PEAK_DISTANCE = 0.1  # of a season, from one peak to the next that counts; by hand
MULTIPLE_TOLERANCE = 0.1  # of a season, from a multiple of it; by hand
MULTIPLE_SHARE = 0.05  # the same as a part of the multiple, if that is more; by hand
LEAST_MULTIPLE = 0.9  # height of the peak at a multiple, relative to that of the period; by hand
MOST_MULTIPLES = 8  # of a period, whose peaks say how long it is; by hand

# --- Strategy and lengths ----------------------------------------------------------------------------------
MIN_HORIZONS_TO_TRAIN = 16  # in a series; measured: with fewer a trained network is no better
DECILES = tuple(k / 10 for k in range(1, 10))  # at which forecasts are compared; by definition
WEIGHT_EXPONENT = 4  # of the ratio of losses, in the odds of that weight; measured: 3 to 6 are alike
LEAST_WEIGHT_OF_OTHERS = 0.05  # of all but the network: with less, "auto" trains it alone; by hand
SHORTEST_CONTEXT = 32  # points of a context that is left open; by hand
CONTEXT_SEASONS = 3  # seasons of it; by hand
USUAL_BATCH = 16  # windows of a step that is left open, where columns share them; by hand
WIDE_COLUMNS = 10  # of a window that they share; a step has fewer windows beyond that; by hand
USUAL_HORIZON = (12, 48)  # least and most targets where the fit does not know the horizon; by hand
SHORTEST_TRAINING_HORIZON = 8  # targets of a window where it does: fewer teach little in each step; by hand
TARGETS_IN_SERIES = 4  # times that the targets of a window fit into the longest series; by hand
CONTEXTS_IN_SERIES = 3  # the same of a context that is left open; by hand
LONGER_CONTEXTS_IN_SERIES = 4  # the same of a longer one that is tried; by hand
LONGER_CONTEXT_ERROR = 0.9  # ratio of errors from which a longer context pays; by hand
LONGER_CONTEXT_LENGTH = 1.5  # ratio of lengths from which it is tried; by hand

# --- Windows -----------------------------------------------------------------------------------------------
CONTEXT_FLOOR = 0.02  # least standard deviation of a context, in that of its series; by hand
MIN_CONTEXT_POINTS = 3  # with fewer, a context is scaled by its whole series; by hand
MIN_SERIES_POINTS = 12  # observed values of a series that has a standard deviation of its own; by hand
MOST_CLOSED_FORM_WINDOWS = 4096  # that baselines are fitted to; by hand
MIN_CLOSED_FORM_WINDOWS = 32  # of them, however long they are; by hand
FARTHEST_X = 1e6  # of an exogenous value, in deviations: farther ones would overflow in a network; by hand

# --- Training ----------------------------------------------------------------------------------------------
GRADIENT_CLIP = 1.0  # largest norm of a step's gradients; by hand
WARMUP = 0.05  # part of the steps in which the learning rate grows; by hand
MOST_VALIDATION_WINDOWS = 256  # of a validation loss; by hand
UPDATE_LR_FACTOR = 0.1  # of the learning rate where new values train a network further; by hand
FINETUNE_LR_FACTOR = 0.02  # of it for a pretrained network, which one series can teach little; by hand
MAX_CYCLES = 2  # whose phases a pretrained network sees, the shortest first; by hand

# --- Calibration -------------------------------------------------------------------------------------------
HOLDOUT_START = 0.75  # part of a series before the windows that show what a network adds; by hand
MIN_HELD_OUT_WINDOWS = 12  # of both parts; by hand
N_HELD_OUT_PATHS = 99  # of a forecast that is judged; by definition: their order statistics are percentiles
NETWORK_WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)  # of a pretrained network, to choose from; by hand
CALIBRATED_AFTER = 1 / 3  # of the steps, a network at irregular times; measured: 1/2 loses more on taxi rides
TRAINED_WEIGHTS = (0.0, 0.5, 1.0)  # of a network at irregular times, in parts of its own; by hand
NEARLY_LEAST_LOSS = 1.01  # up to which a larger weight is kept; measured: the smallest costs sunspots 7 %
PRETRAINED_INFLATIONS = (0.8, 1.5)  # least and largest of its scale; by hand
N_CALIBRATION_WINDOWS = 64  # that are forecast; more of one series overlap; by hand
N_CALIBRATION_PATHS = 19  # of each; by definition: two of 19 hold the central 80 % between them
GAUSSIAN_WEIGHTS = (0.0, 0.33, 0.67, 1.0)  # of the imputer's network, to choose from; by hand
GAUSSIAN_INFLATIONS = tuple(1.15**k for k in range(6))  # few points show no surplus width; by hand
INFLATION_PRIOR_COUNT = 10.0  # targets that count as having confirmed an inflation of 1; by hand
N_COPULA_ORIGINS = 24  # of forecasts of a network, whose errors show how series go together; by hand
N_COPULA_PATHS = 99  # of each; measured: ranks among 19, as elsewhere, make .57 of a correlation of .62
LARGEST_COPULA_ERROR = 4.0  # of these, in mean absolute errors; by hand
N_PARAMETER_PATHS = 200  # behind likelihood parameters that darts predicts; by hand

# --- Imputer, and its Gaussian process ---------------------------------------------------------------------
VAGUE_TREND_VARIANCE = 10.0  # of the level and of the slope, which follow from the window; by hand
INITIAL_VARIANCE = 0.3  # of each of the other parts, before the fit; by hand
INITIAL_RANGES = (0.3, 0.1, 1.0)  # of the rough, the medium and the smooth part, in contexts; by hand
INITIAL_NOISE = 0.05  # variance; by hand
INITIAL_SEASON_RANGE = 2.0  # over which the part that repeats wanders, in contexts; by hand
FILL_WINDOW = (64, 192)  # least and most points of a window that is left open; by hand
FILL_SEASONS = 3  # seasons of it, if these are more; by hand
FILL_GAP = (20, 48)  # least and most missing points of a window that is left open; by hand
FILL_END_WINDOWS = 4  # windows before new rows that are kept for their fill; by hand
MOST_LOST_FREEDOM = 0.5  # share of the points that parameters of the process take at most; by hand
SINGLE_GAPS = 0.65  # fraction of training gaps that are one point, a fifth of what is hidden; by hand
JOINT_POINTS = 256  # missing points that are drawn jointly; by hand
N_IMPUTATION_ORDERS = 4  # in which the points of a window are drawn, each by a part of the paths; by hand
GAUSSIAN_PROCESS_LR = 0.15  # of a fit of its Gaussian process; by hand
GAUSSIAN_PROCESS_STEPS = 150  # batches that its Gaussian process is fitted to; by hand
GAUSSIAN_PROCESS_WINDOWS = 8  # in each; by hand
GAP_HOLDOUT = 0.2  # fraction of a column that is kept for calibration; by hand
MOST_GAP_HOLDOUT = 500  # points of it; by hand
MIN_GAP_HOLDOUT_POINTS = 40  # of a column of which some are kept; by hand
ENOUGH_GAP_POINTS = 100  # that calibration needs; by hand
MOST_GAP_ROUNDS = 4  # splits of a short series to reach them; by hand
USUAL_GAPS = (1, 2, 4, 8, 16)  # lengths to calibrate on where the data have no gaps; by hand
N_GAP_BATCHES = 4  # of windows in a calibration; by hand
N_GAP_ORDERS = 2  # of the targets of each; by hand
LOGARITHM_OFFSETS = (1.0, 0.3, 0.1, 0.01)  # in means: from a slight bend to a logarithm; by hand
LOGARITHM_EVIDENCE = 3.0  # nats by which a further bend must be better: a Bayes factor of 20; by hand
MOST_TIED = 0.05  # share of values as small as the smallest, of a logarithm; measured: dry days fill 3 times
LOGARITHM_STEPS = 60  # of the fits that are compared; by hand
LOGARITHM_BATCH = 4  # windows in a step; by hand
LOGARITHM_WINDOWS = 32  # on which they are compared; by hand
