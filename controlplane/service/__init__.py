"""The installation of the service under systemd, with a user of its own."""
