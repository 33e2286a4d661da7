"""A request on its way: its states, how it reaches its device, and how it ends."""
