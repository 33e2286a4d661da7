"""The commands, their arguments and the parsers of values, without the service's libraries."""
