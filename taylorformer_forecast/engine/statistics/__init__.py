"""Statistical forecasts of series: corrected, averaged with others, joined, multiplied by a season."""
