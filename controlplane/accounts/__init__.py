"""Who may call: people and their memberships, sessions, API keys."""
