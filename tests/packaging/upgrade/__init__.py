"""Upgrades of the Debian package that are interrupted at each step, and broken versions."""
