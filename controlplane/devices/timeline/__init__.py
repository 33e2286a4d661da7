"""When a device was online."""
