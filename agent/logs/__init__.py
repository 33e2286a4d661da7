"""How the daemon logs: what is set up, what is taken out, where it goes."""
