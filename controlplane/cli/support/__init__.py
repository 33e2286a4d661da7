"""``venue-control support``, which works directly on the database."""
