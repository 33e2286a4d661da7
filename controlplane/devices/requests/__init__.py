"""The life of a request, and its delivery to the device."""
