"""The hosts of a network report: names, kinds, makers and services."""
