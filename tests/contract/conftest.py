"""The contract's tests run services of their own."""

from tests.quick_databases import _quick_databases as _quick_databases
