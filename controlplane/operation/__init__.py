"""What an operation is: its row, request context, caller, errors, cursors and limits."""
