"""``venue-control support``: support's own side, said directly in the database."""
