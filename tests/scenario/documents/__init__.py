"""Tests that run every command of a document exactly as it is written."""
