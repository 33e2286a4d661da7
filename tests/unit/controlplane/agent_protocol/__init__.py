"""Tests of the agent protocol against its contract."""
