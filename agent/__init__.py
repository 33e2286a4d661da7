"""The venue agent: a daemon that sends diagnostic reports to a service, and its command line."""

__version__ = "1.0.0"
