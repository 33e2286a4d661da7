"""Tests of the sign-in with an identity provider, which runs in a process of its own."""
