"""Authentication: sign-in, sessions, memberships, keys that act for a user."""
