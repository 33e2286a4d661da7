"""Tests that the service grants each credential the permissions of two tables."""
