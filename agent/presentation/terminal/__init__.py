"""Shows a report on a terminal with `rich`."""
