"""A generated merchant with sales, for demonstrations and tests. Equal plans give equal data."""
