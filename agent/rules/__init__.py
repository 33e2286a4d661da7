"""Pure decisions: values, `now` and `rng` in, values out. No I/O, no clock, no logging."""
