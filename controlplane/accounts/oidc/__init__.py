"""Sign-in with an identity provider by OpenID Connect: the rules, without HTTP."""
