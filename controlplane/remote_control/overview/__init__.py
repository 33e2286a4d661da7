"""What a console shows: devices in the order of their need, and how that changes."""
