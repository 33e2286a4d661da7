"""The daemon's log: setup, filters and journald."""
