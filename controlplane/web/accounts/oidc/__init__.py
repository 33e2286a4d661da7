"""HTTP endpoints of the sign-in with identity providers, and the calls to the providers."""
