"""The agent as a service of this machine: systemd, launchd or the Windows service manager."""
