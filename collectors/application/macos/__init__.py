"""The facts of macOS, from its own programs such as system_profiler and scutil."""
