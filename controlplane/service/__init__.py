"""The service installed on a machine: under systemd, as a user of its own."""
