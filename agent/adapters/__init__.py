"""One module for each external system. Only one module imports a third-party I/O library."""
