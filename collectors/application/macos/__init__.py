"""What macOS tells by its own programs: system_profiler, sysctl, scutil."""
