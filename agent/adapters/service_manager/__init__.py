"""Installs and controls the agent as a service of systemd, launchd or Windows."""
