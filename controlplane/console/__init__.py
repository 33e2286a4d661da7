"""The web console: static files. They run in the user's browser and call the service."""
