"""HTTP endpoints of the retail API."""
