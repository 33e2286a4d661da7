"""What the web console costs the service."""
