"""Tests of doctor's check of which users can read the device's private key."""

from pathlib import Path

import pytest

from agent.adapters.identity import KEY_NAME
from agent.adapters.storage.state import StateDirectory
from agent.doctor.check import Outcome
from agent.doctor.checks.storage import key_permissions
from agent.doctor.context import Context


def outcome_for(folder: Path, mode: int) -> Outcome:
    key = folder / KEY_NAME
    key.touch()
    key.chmod(mode)
    return key_permissions(Context(state=StateDirectory(folder)))


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o610, 0o660])
def test_a_device_key_that_other_users_can_access_fails_the_check(
    tmp_path: Path, mode: int
) -> None:
    outcome = outcome_for(tmp_path, mode)
    assert outcome.status == "fail"
    assert f"mode {mode:04o}" in outcome.detail
    assert outcome.fix == f"run `chmod 600 {tmp_path / KEY_NAME}`"


def test_a_private_key_passes(tmp_path: Path) -> None:
    assert outcome_for(tmp_path, 0o600).status == "ok"
