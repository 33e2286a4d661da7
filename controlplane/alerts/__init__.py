"""Alerts: conditions, their state, and what is notified."""
