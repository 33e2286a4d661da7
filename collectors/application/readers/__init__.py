"""Sources that several platforms share. Each module has one subject."""
