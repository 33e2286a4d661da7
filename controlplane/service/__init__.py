"""Installs the service under systemd, where it runs as a separate user."""
