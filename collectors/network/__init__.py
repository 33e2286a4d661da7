"""The network report: interfaces, mDNS, the scan, and the devices that the printers match."""
