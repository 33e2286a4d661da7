"""The findings of all devices: stored with their reports, counted and listed."""
