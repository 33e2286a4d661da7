"""What the service tells its operators of itself: metrics and logs."""
