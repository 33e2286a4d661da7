"""The commands with their arguments, and the parsers of option values.

This package imports no library that only the service requires, such as SQLAlchemy.
"""
