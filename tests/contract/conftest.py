"""Fixtures of the contract tests, which start their own services."""

from tests.quick_databases import quick_databases

__all__ = ["quick_databases"]  # a fixture
