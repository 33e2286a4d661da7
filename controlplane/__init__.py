"""The reference service: the device side and the operator side of the remoteControl contract."""
