"""The verbs of a merchant: sales, catalog, figures and retail keys."""
