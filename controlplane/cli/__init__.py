"""The command line of the service. Each command is a function of its options
that returns an exit code.
"""
