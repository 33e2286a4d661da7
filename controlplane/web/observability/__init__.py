"""Metrics, logs, and what systemd is notified of."""
