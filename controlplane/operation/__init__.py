"""The parts of an operation: definition, request context, caller, errors, cursors and limits."""
