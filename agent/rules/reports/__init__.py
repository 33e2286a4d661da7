"""Facts → the contract's payloads → sealed bodies, each inside its limits. Pure."""
