"""Tests of the permissions of every kind of credential. `table.py` defines the permissions."""
