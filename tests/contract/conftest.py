"""The contract's tests run services of their own."""

from tests.quick_databases import quick_databases

__all__ = ["quick_databases"]  # a fixture
