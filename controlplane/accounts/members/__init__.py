"""Members of an organization, as its owners manage them."""
