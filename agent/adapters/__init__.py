"""One module for each outside thing. A third-party I/O library is imported by one module only."""
