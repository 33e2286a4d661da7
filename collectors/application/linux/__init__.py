"""What Linux tells without privileges: procfs, sysfs, the system bus."""
