"""Alerts: rules, the states of conditions, and notifications."""
