"""When devices are heard, when they need not be, and what that looks like over thirty days."""
