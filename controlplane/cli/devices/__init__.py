"""``venue-control devices``, ``device`` and ``revoke``, and the filters of devices."""
