"""Requests that wait until an offline device is online."""
