"""What is known of upgrades: the record of the last one, and what the package manager offers."""
