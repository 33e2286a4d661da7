"""Tests of the typed clients of the service."""
