"""Delivery of messages to webhooks, and of notifications by e-mail."""
