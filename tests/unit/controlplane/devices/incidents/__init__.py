"""Tests of incidents that several devices of a location share."""
