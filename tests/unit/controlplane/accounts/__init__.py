"""Tests of sign-in, sessions, memberships and keys of users."""
