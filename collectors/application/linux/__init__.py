"""Reads the facts of Linux that need no privileges, from procfs, sysfs and the system bus."""
