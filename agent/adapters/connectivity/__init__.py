"""Probes the path to the service, and reads local faults: print queues, kiosk, watched devices."""
