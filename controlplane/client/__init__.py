"""The service as its clients call it, over HTTP."""
