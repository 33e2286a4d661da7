"""The web console: static files that speak the facade from the operator's browser."""
