"""Tests of the maximum number of streams, which the limit on open files of a process can reduce."""

import pytest

from controlplane.server import FILES_BESIDE, bounded_streams
from controlplane.settings import Settings


def test_a_system_that_permits_enough_files_bounds_nothing() -> None:
    settings = Settings()
    assert bounded_streams(settings, settings.streams_max + FILES_BESIDE) is settings
    assert bounded_streams(settings, -1) is settings


@pytest.mark.parametrize("files", [256, 1024, 4096, 10_000])
def test_streams_leave_files_to_everything_else_and_to_other_organizations(files: int) -> None:
    bounded = bounded_streams(Settings(), files)
    assert bounded.streams_max <= max(files - FILES_BESIDE, files // 2)
    assert 0 < bounded.organization_streams_max < bounded.streams_max
