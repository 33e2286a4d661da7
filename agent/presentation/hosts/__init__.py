"""The hosts of a network report: what each is, who made it, what it offers, in words."""
