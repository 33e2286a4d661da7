"""Financial figures: pure functions over sums, with all definitions. No input or output."""
