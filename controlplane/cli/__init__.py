"""The command line of the service. Each command takes its options and returns an exit code."""
