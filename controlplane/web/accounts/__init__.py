"""HTTP endpoints of sign-in, sign-out, invitations and passwords."""
