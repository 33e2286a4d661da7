"""Financial figures: their definitions, as pure functions of sums without input or output."""
