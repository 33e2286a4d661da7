"""Tests of the limits on connections, which depend on how many files the process may open."""

import sys

import pytest

from controlplane.server import (
    FILES_FOR_CALLS,
    RESERVED_FILES,
    bounded_connections,
    highest_file_limit,
)
from controlplane.settings import Settings


def test_a_high_limit_on_open_files_does_not_change_the_settings() -> None:
    settings = Settings()
    assert bounded_connections(settings, settings.streams_max + RESERVED_FILES) is settings
    assert bounded_connections(settings, -1) is settings  # -1: unlimited


@pytest.mark.parametrize(
    ("platform", "soft", "hard", "highest"),
    [
        ("linux", 1024, 20_000, 20_000),
        ("darwin", 256, 4096, 4096),
        ("darwin", 256, sys.maxsize, 10_240),  # macOS: sys.maxsize is unlimited
        ("darwin", 65_536, sys.maxsize, 65_536),
    ],
)
def test_the_limit_on_open_files_is_raised_as_far_as_the_system_accepts(
    platform: str, soft: int, hard: int, highest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    assert highest_file_limit(soft, hard) == highest


@pytest.mark.parametrize("files", [256, 1024, 4096, 10_000])
def test_the_streams_of_the_service_and_of_an_organization_are_limited(files: int) -> None:
    bounded = bounded_connections(Settings(), files)
    assert bounded.streams_max <= max(files - RESERVED_FILES, files // 2)
    assert 0 < bounded.organization_streams_max < bounded.streams_max


@pytest.mark.parametrize("files", [256, 1024, 4096, 10_000])
def test_streams_and_connections_that_wait_for_clients_leave_files_for_calls(files: int) -> None:
    bounded = bounded_connections(Settings(), files)
    assert bounded.streams_max + bounded.awaited_max <= files - min(FILES_FOR_CALLS, files // 8)
    assert 0 < bounded.network_awaited_max < bounded.awaited_max <= Settings().awaited_max
