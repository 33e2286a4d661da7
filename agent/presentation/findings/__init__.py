"""What a report shows to be wrong, and what to do about it, judged from its payload alone."""
