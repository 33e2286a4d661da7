"""Reads the facts of macOS with its own programs, such as system_profiler and scutil."""
