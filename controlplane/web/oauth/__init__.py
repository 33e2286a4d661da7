"""HTTP endpoints and pages of OAuth 2.0."""
