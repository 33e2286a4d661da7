"""The HTTP layer: admission, endpoints, documents, metrics and background tasks."""
