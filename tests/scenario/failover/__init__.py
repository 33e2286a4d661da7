"""Drills with two hosts of the service, and a PostgreSQL server with a standby."""
