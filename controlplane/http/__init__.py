"""The service on HTTP: the facade, the command stream, the console."""
