"""The console's start page, its lists of devices, reports and printers, and its device page."""
