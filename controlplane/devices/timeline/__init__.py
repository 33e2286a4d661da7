"""The timeline of a device: when it was online."""
