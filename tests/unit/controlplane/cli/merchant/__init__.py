"""The merchant's verbs: sales, catalog, figures and retail keys."""
