"""Tests that follow documents literally: every command, as written."""
