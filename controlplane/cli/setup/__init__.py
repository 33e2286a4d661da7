"""``venue-control setup``: the first organization, owner, location and key of a service."""
