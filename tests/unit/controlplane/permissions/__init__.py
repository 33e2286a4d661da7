"""What every credential may do, as one table says and as the service does."""
