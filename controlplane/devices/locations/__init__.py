"""Opening hours and maintenance windows of locations."""
