"""``venue-control devices``, ``device`` and ``revoke``, and which devices are meant."""
