"""A report as one self-contained web page with a drawing of the network."""
