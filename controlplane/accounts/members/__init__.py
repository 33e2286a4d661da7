"""Members of an organization, managed by its owners."""
