"""Rules that detect problems in a report's payload, and name the fix of each."""
