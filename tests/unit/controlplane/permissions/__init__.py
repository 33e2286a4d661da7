"""The permissions of every credential: the service agrees with one table."""
