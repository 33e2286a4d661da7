"""Financial figures, computed from sums by pure functions."""
