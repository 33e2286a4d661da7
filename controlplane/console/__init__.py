"""The web console: static files. In the operator's browser, they call the API of the service."""
