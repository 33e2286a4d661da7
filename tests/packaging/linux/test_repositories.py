"""Tests the parts of repositories and RPM packages that need no tool of a distribution."""

import datetime
import hashlib
import lzma
import subprocess
from pathlib import Path

import pytest

from tests.packaging.linux.documents import documented
from tests.packaging.scripts import packaging_script
from tests.paths import ROOT

NOW = datetime.datetime(2026, 11, 23, 20, 10, 30, 5, tzinfo=datetime.UTC)
KEY_LIST = """\
sec:u:3072:1:AAAABBBBCCCCDDDD:1790000000:::u:::scESC:::+:::23::0:
fpr:::::::::11112222333344445555AAAABBBBCCCCDDDD0000:
uid:u::::1790000000::X::Packages <packages@example.com>::::::::::0:
ssb:u:3072:1:EEEE:1790000000::::::e:::+:::23:
fpr:::::::::99992222333344445555AAAABBBBCCCCDDDD9999:
"""


def test_release_file_has_the_hash_of_each_index_and_never_expires_by_default() -> None:
    publish = packaging_script("apt/publish.py")
    indices = {"main/binary-amd64/Packages": b"Package: venue-agent\n"}
    text = publish.release_text(indices, ["amd64"], NOW)
    digest = hashlib.sha256(b"Package: venue-agent\n").hexdigest()
    assert f"SHA256:\n {digest} 21 main/binary-amd64/Packages\n" in text
    assert "\nDate: Mon, 23 Nov 2026 20:10:30 GMT\n" in text
    assert "\nAcquire-By-Hash: yes\n" in text
    assert "Valid-Until" not in text
    limited = publish.release_text(indices, ["amd64"], NOW, valid_days=7)
    assert "\nValid-Until: Mon, 30 Nov 2026 20:10:30 GMT\n" in limited


def test_an_index_has_a_later_date_than_the_published_one(tmp_path: Path) -> None:
    """If two indices had the same date, apt would accept the older one again from an attacker."""
    publish = packaging_script("apt/publish.py")
    now = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    published_date = now + datetime.timedelta(days=1)
    (tmp_path / "Release").write_text(publish.release_text({}, ["amd64"], published_date))
    next_date = publish.next_date(tmp_path / "Release")
    assert next_date == published_date + datetime.timedelta(seconds=1)
    assert publish.next_date(tmp_path / "none") < published_date


def test_documented_origin_and_suite_are_those_of_the_release_file() -> None:
    text = packaging_script("apt/publish.py").release_text({}, ["amd64"], NOW)
    assert "Origin: venue-agent\n" in text
    assert "Suite: stable\n" in text
    assert '"origin=venue-agent,suite=stable";' in documented("docs/install.md")["unattended"]


def test_an_older_index_remains_available_by_its_hash(tmp_path: Path) -> None:
    publish = packaging_script("apt/publish.py")
    first = publish.write_index(tmp_path, "Package: a\n")
    publish.write_index(tmp_path, "Package: b\n")
    assert (tmp_path / "Packages").read_text() == "Package: b\n"
    assert lzma.decompress((tmp_path / "Packages.xz").read_bytes()) == b"Package: b\n"
    by_hash = {path.name for path in (tmp_path / "by-hash/SHA256").iterdir()}
    assert len(by_hash) == 4  # two indices, each plain and compressed
    assert {hashlib.sha256(form).hexdigest() for form in first.values()} < by_hash


def test_published_package_cannot_be_replaced(tmp_path: Path) -> None:
    publish = packaging_script("apt/publish.py")
    package = tmp_path / "venue-agent_1.0.0_amd64.deb"
    package.write_bytes(b"one")
    pool = tmp_path / "pool"
    publish.add_to_pool([package], pool)
    publish.add_to_pool([package], pool)
    assert publish.architectures_in(pool) == ["amd64"]
    package.write_bytes(b"another")
    with pytest.raises(SystemExit, match="already published with other content"):
        publish.add_to_pool([package], pool)
    assert (pool / "venue-agent" / package.name).read_bytes() == b"one"


def test_sources_file_contains_the_key() -> None:
    publish = packaging_script("apt/publish.py")
    key = publish.Key("ABCD", "-----BEGIN-----\n\nmQ\n-----END-----\n")
    text = publish.sources_text("https://packages.example.com/apt", ["amd64", "arm64"], key)
    assert text.startswith("# Key: ABCD\nTypes: deb\nURIs: https://packages.example.com/apt\n")
    assert text.endswith("Signed-By:\n -----BEGIN-----\n .\n mQ\n -----END-----\n")


def test_dnf_reads_the_key_from_the_file_that_the_documented_command_writes() -> None:
    text = packaging_script("rpm/publish.py").repository_file("https://packages.example.com/dnf")
    assert "gpgcheck=1\nrepo_gpgcheck=1\n" in text
    (key,) = (line for line in text.splitlines() if line.startswith("gpgkey="))
    assert f"-o {key.removeprefix('gpgkey=file://')} " in documented("docs/install.md")["dnf"]


def test_fingerprints_are_those_of_primary_keys() -> None:
    fingerprints = packaging_script("openpgp.py").primary_fingerprints(KEY_LIST)
    assert fingerprints == ["11112222333344445555AAAABBBBCCCCDDDD0000"]


def test_readme_and_install_guide_have_the_same_two_commands() -> None:
    block = documented("README.md")["apt"]
    assert block == documented("docs/install.md")["apt"]
    assert len(block.splitlines()) == 2


@pytest.mark.parametrize(
    ("version", "expected"),
    [("1.0.0", "1.0.0"), ("1.0.0rc1", "1.0.0~rc1"), ("1.0.0-beta", "1.0.0~beta"),
     ("1.0.dev3", "1.0~dev3")],
)  # fmt: skip
def test_rpm_version_marks_a_prerelease_with_a_tilde(version: str, expected: str) -> None:
    assert packaging_script("rpm/build_rpm.py").rpm_version(version) == expected


@pytest.mark.parametrize(
    "script", sorted(path for path in (ROOT / "packaging/rpm").glob("*/p*") if not path.suffix),
    ids=lambda path: f"{path.parent.name}-{path.name}",
)  # fmt: skip
def test_scriptlets_are_valid_shell_and_continue_after_an_error(script: Path) -> None:
    assert script.read_text().startswith("#!/bin/sh\n")
    subprocess.run(("sh", "-n", str(script)), check=True)
    # If a scriptlet fails before the old files are removed, both versions stay installed.
    assert "set -e" not in script.read_text()


def test_rpm_lists_its_files_but_no_system_directories_and_protects_its_configuration(
    tmp_path: Path,
) -> None:
    build = packaging_script("rpm/build_rpm.py")
    (tmp_path / "onedir").mkdir()
    for name in ("venue-control.1", "venue-control.bash"):
        (tmp_path / name).touch()
    program, tree = build.PROGRAMS["venue-control"], tmp_path / "tree"
    build.lay_out_rpm(tree, tmp_path / "onedir", tmp_path, program)
    lines = build.file_list(tree, program)
    assert (
        "%attr(0640,root,venue-control) %config(noreplace) /etc/venue-control/serve.conf" in lines
    )
    assert {"/usr/lib/venue-control", "/usr/bin/venue-control"} <= set(lines)
    assert not {"/usr", "/usr/bin", "/usr/lib/systemd/system"} & set(lines)
    scripts = build.scripts_of(program)
    assert 'echo \'u     venue-control -  "Venue control" /var/lib/venue-control' in scripts
    assert "@SYSUSERS@" not in scripts


def test_rpm_keeps_and_verifies_versions_as_the_debian_package_does(tmp_path: Path) -> None:
    build = packaging_script("rpm/build_rpm.py")
    (tmp_path / "onedir").mkdir()
    for name in ("venue-agent.1", "venue-agent.bash"):
        (tmp_path / name).touch()
    program, tree = build.PROGRAMS["venue-agent"], tmp_path / "tree"
    build.lay_out_rpm(tree, tmp_path / "onedir", tmp_path, program)
    lines = build.file_list(tree, program)
    assert "/usr/libexec/venue-agent-upgrade" in lines
    assert (tree / "usr/libexec/venue-agent-upgrade").stat().st_mode & 0o777 == 0o755
    units = tree / "usr/lib/systemd/system"
    assert (units / "multi-user.target.wants/venue-agent-upgrade.service").is_file()
    assert (
        str((tree / "usr/bin/venue-agent").readlink()) == "../lib/venue-agent.current/venue-agent"
    )
    scripts = build.scripts_of(program)
    # %pre and %postun run without the package's files, so each contains the script for upgrades.
    assert scripts.count("select_version()") == 2
    assert """upgrade keep "${old:-unknown}" '%{version}'""" in scripts
