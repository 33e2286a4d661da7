"""``venue-control support``. The commands read and change the database directly."""
