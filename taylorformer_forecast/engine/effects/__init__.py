"""What covariates that are known ahead do to series: regressions, and times at which all is zero."""
