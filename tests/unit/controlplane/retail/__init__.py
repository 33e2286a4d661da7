"""Tests of the retail API."""
