"""Reads the record of the last upgrade, and the version that the package manager offers."""
