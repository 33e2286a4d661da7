"""``venue-control request``: which devices are asked, the waiting, and what came of it."""
