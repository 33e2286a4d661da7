"""The command line of the service.

Each command is a function that takes the parsed options and returns an exit code.
"""
