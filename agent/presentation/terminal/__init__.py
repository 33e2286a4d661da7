"""A report on a terminal, by `rich`."""
