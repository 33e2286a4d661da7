"""What a client of the retail API proves itself with: API keys, tokens, and what signs them."""
