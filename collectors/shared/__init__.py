"""Modules that both collectors use."""
