"""Tests of the permissions of every kind of credential, which `permission_tables.py` defines."""
