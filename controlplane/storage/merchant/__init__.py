"""The tables of a merchant: what it is, what it offers, what it sold, and the sums over that."""
