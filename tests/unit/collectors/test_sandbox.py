from pathlib import Path

import pytest

from collectors import sandbox
from collectors.landlock import Access


def test_a_directory_of_a_dhcp_client_may_be_listed_but_only_its_leases_may_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("eth0.lease", "secret"):
        (tmp_path / name).touch()
    monkeypatch.setattr(sandbox, "LEASES", (f"{tmp_path}/*.lease", "/nowhere/*.lease"))
    rules = {rule.path: rule.access for rule in sandbox.rules()}
    assert rules[str(tmp_path)] == Access.READ_DIR
    assert rules[f"{tmp_path}/eth0.lease"] == Access.READ_FILE
    assert f"{tmp_path}/secret" not in rules
