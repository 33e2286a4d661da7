"""The command line of the service: each verb takes its options, returns an exit code."""
