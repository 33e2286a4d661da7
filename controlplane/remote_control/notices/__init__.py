"""What is told of a fleet: each change once, when it lasts, and its end."""
