"""HTTP of the sign-in with identity providers."""
