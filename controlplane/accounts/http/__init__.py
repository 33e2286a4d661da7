"""Sign-in, sign-out and the profile over HTTP, and the cookie between them."""
