"""The device list of the console."""
