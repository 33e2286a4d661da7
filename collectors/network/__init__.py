"""The network report: interfaces, mDNS, the scan, and the devices that print queues print to."""
