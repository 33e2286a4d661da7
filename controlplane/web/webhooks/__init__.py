"""Delivery of webhooks."""
