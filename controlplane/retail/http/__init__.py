"""The retail API over HTTP: who is let in, and how it says no."""
