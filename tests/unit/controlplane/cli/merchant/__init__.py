"""Tests of the commands for a merchant: sales, catalog, figures and retail keys."""
