"""``venue-control reports``, ``report`` and ``changes``."""
