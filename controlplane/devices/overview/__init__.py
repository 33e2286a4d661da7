"""The start page of the console, its lists of devices and printers, and its page of a device."""
