"""What was sold, in figures: pure functions over sums. No I/O; all definitions stand here."""
