"""Tests how a collector parses its job."""

import pytest

from collectors.__main__ import job_from_json
from collectors.contract import ApplicationJob


def test_an_empty_line_gives_a_job_with_the_default_bounds() -> None:
    assert job_from_json("application", b"\n") == ApplicationJob()


@pytest.mark.parametrize(
    "line",
    [b"not JSON", b"[]", b'"text"', b"1", b'{"kind": "network"}', b'{"unknown": 1}'],
)
def test_a_line_that_is_no_job_of_the_kind_is_refused(line: bytes) -> None:
    with pytest.raises((ValueError, TypeError)):
        job_from_json("application", line)
