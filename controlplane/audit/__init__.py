"""Who changed what, by which credential: written with the change, read by owners."""
