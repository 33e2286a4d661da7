"""Upgrades of the Debian package that are killed at every step, and new versions that do not work."""
