"""Computes what a question asks of one table or of dates: counts, sums, extremes, filters and days."""
