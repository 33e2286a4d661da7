"""The procedures of `remoteControl`: a model in, a record out, in one transaction."""
