"""The procedures of `remoteControl`. Each runs in one transaction."""
