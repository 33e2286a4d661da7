"""Sources that several platforms share: one file a subject."""
