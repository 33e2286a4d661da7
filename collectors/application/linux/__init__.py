"""The facts that Linux provides without privileges: procfs, sysfs, the system bus."""
