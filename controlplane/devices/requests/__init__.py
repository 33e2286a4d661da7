"""The life cycle of requests, and their delivery to devices."""
