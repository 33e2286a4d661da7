"""Tests of doctor's check of the free space and inodes of the disk with the state directory."""

import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from agent.adapters.storage.state import StateDirectory
from agent.doctor.checks.storage import FREE_BYTES_WARN, FREE_INODES_FAIL, disk_space
from agent.doctor.context import Context


@pytest.mark.parametrize(
    ("free_inodes", "status"),
    [(0, "fail"), (FREE_INODES_FAIL - 1, "fail"), (FREE_INODES_FAIL, "ok")],
)
def test_a_disk_with_few_free_inodes_fails_with_their_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free_inodes: int, status: str
) -> None:
    inodes = SimpleNamespace(f_files=1000, f_favail=free_inodes)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=FREE_BYTES_WARN))
    monkeypatch.setattr(os, "statvfs", lambda _: inodes, raising=False)
    outcome = disk_space(Context(state=StateDirectory(tmp_path)))
    assert outcome.status == status
    if status == "fail":
        assert outcome.detail == f"only {free_inodes} inodes free"
        assert outcome.fix == f"remove files at {tmp_path}"
