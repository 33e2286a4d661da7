"""Tests of the sign-in with an identity provider. The provider is a separate process."""
