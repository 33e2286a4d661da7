"""Who may call: sign-in, sessions, memberships, keys that act as a person."""
