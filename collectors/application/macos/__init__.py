"""The facts of macOS by its own programs: system_profiler, sysctl, scutil."""
