"""Sources that several platforms share. Each subject has a file."""
