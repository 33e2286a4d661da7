"""The incidents of devices, stored with their reports, and incidents that devices share."""
