"""The network report: interfaces, mDNS, the scan, printers and how they match."""
