"""Access to external systems, such as the service, files, and service managers.

Each third-party I/O library is imported by one module only.
"""
