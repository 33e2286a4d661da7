"""The procedures of `remoteControl`. Each takes a model and returns one, in one transaction."""
