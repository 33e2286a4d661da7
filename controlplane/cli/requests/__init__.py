"""``venue-control request``: the selected devices, their requests, and the results."""
