"""Pure decisions. The functions do no I/O, read no clock and log nothing.

They get the time as `now` and a source of random numbers as `rng`.
"""
