"""The tables of a merchant: structure, catalog, sales, and sums over sales."""
