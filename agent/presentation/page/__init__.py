"""A report as one self-contained web page, its network drawn."""
