"""The venue agent: a daemon that answers a service's requests for diagnostics, and its CLI."""

__version__ = "0.1.0"
