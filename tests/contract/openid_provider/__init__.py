"""Sign-in with an independent OpenID provider: `oidc-provider` on Node.js."""
