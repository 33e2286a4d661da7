"""The procedures of `remoteControl`: a model in, a record out, within one transaction."""
