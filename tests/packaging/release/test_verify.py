"""A release is accepted only if every byte of it is what was signed and built."""

import io
import json
import lzma
import re
import shutil
import struct
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from release import NOTES, PROVENANCE, SIGNATURE, SUMS
from release.checksums import NAMESPACE, PRINCIPAL, public_key_is_listed
from release.clean_root import Root
from release.contents import contents
from release.source import Source
from release.verify import differences, differences_from_rebuild, main

from tests.packaging.release.tiny_release import (
    TinyRelease,
    deb,
    git,
    make_key,
    make_tiny_release,
)
from tests.paths import ROOT

pytestmark = pytest.mark.needs("ssh-keygen")

DEB = "venue-agent_1.2.3_amd64.deb"
FILES = (
    "Containerfile", "Containerfile.cdx.json", NOTES, PROVENANCE, SUMS, SIGNATURE, DEB,
    f"{DEB}.cdx.json", "venue_agent-1.2.3-py3-none-any.whl",
    "venue_agent-1.2.3-py3-none-any.whl.cdx.json",
)  # fmt: skip


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> TinyRelease:
    return make_tiny_release(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def tiny(original: TinyRelease, tmp_path: Path) -> TinyRelease:
    """A copy of the release, which a test may change."""
    shutil.copytree(original.directory, tmp_path / "release")
    return replace(original, directory=tmp_path / "release")


def problems(tiny: TinyRelease) -> list[str]:
    return differences(tiny.directory, tiny.signers, tiny.checkout)


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_release_as_it_was_made_has_no_difference(original: TinyRelease) -> None:
    assert {path.name for path in original.directory.iterdir()} == set(FILES)
    assert problems(original) == []


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_byte_in_any_file_is_refused(tiny: TinyRelease, name: str) -> None:
    content = bytearray((tiny.directory / name).read_bytes())
    content[len(content) // 2] ^= 1
    (tiny.directory / name).write_bytes(content)
    assert problems(tiny) != []


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_refused(tiny: TinyRelease, name: str) -> None:
    (tiny.directory / name).unlink()
    assert any(name in line for line in problems(tiny))


def test_an_extra_file_and_a_link_are_refused(tiny: TinyRelease) -> None:
    (tiny.directory / "extra.deb").write_text("")
    (tiny.directory / NOTES).rename(tiny.directory.parent / "notes")
    (tiny.directory / NOTES).symlink_to(tiny.directory.parent / "notes")
    assert problems(tiny) == [
        "extra.deb: not listed in SHA256SUMS", f"{NOTES}: not a regular file",
    ]  # fmt: skip


@pytest.mark.parametrize("line", ["x", "0" * 64 + "  ../etc/passwd", "0" * 64 + f"  {SIGNATURE}"])
def test_an_invalid_line_of_checksums_is_refused(tiny: TinyRelease, line: str) -> None:
    with (tiny.directory / SUMS).open("a") as sums:
        sums.write(line + "\n")
    assert any(each.startswith(f"{SUMS}: invalid line") for each in problems(tiny))


def test_a_signature_by_another_key_or_for_another_purpose_is_refused(
    tiny: TinyRelease, tmp_path: Path
) -> None:
    make_key(tmp_path / "other")
    replace(tiny, key=tmp_path / "other").sign_again()
    (line,) = problems(tiny)
    assert line.startswith(f"{SIGNATURE}: not a valid signature by {PRINCIPAL}")
    tiny.sign_again()
    signers = tmp_path / "signers"
    signers.write_text(tiny.signers.read_text().replace(PRINCIPAL, f'{PRINCIPAL} namespaces="git"'))
    assert problems(replace(tiny, signers=signers)) != []
    signers.write_text(
        tiny.signers.read_text().replace(PRINCIPAL, f'{PRINCIPAL} namespaces="{NAMESPACE}"')
    )
    assert problems(replace(tiny, signers=signers)) == []
    (missing,) = problems(replace(tiny, signers=tmp_path / "none"))
    assert "does not exist. Set SIGNERS=file" in missing


def test_only_a_listed_key_may_sign(tiny: TinyRelease, tmp_path: Path) -> None:
    make_key(tmp_path / "other")
    assert public_key_is_listed(tiny.key, tiny.signers)
    assert not public_key_is_listed(tmp_path / "other", tiny.signers)


def test_a_signed_package_with_a_module_that_no_component_has_is_refused(
    tiny: TinyRelease,
) -> None:
    (tiny.directory / DEB).write_bytes(deb("intruder"))
    tiny.sign_again()
    bill = f"{DEB}.cdx.json"
    assert problems(tiny) == [
        f"{PROVENANCE}: describes a different {DEB}",
        f"{bill}: is about a different {DEB}",
        f"{bill}: lists usr/lib/venue-agent/venue-agent with a different hash",
        f"{bill}: no component has the module intruder",
    ]


def test_a_bill_that_lacks_a_file_or_a_library_is_refused(tiny: TinyRelease) -> None:
    path = tiny.directory / "venue_agent-1.2.3-py3-none-any.whl.cdx.json"
    bill = json.loads(path.read_text())
    names = {each["name"]: each for each in bill["components"]}
    assert {"h11", "alembic", "agent/__init__.py"} < names.keys()
    assert "mypy" not in names
    assert (names["h11"]["scope"], names["alembic"]["scope"]) == ("required", "optional")
    bill["components"].remove(names["agent/__init__.py"])
    bill["components"].remove(names["h11"])
    path.write_text(json.dumps(bill))
    tiny.sign_again()
    assert problems(tiny) == [
        f"{PROVENANCE}: describes a different {path.name}",
        f"{path.name}: does not list agent/__init__.py",
        f"{path.name}: does not list every library that the package requires",
    ]


def test_a_bill_with_another_base_image_is_refused(tiny: TinyRelease) -> None:
    change(tiny.directory / "Containerfile.cdx.json", "debian:12-slim", "debian:13-slim")
    tiny.sign_again()
    assert problems(tiny) == [
        f"{PROVENANCE}: describes a different Containerfile.cdx.json",
        "Containerfile.cdx.json: lists different images",
    ]


def provenance(tiny: TinyRelease) -> dict[str, Any]:
    return dict(json.loads((tiny.directory / PROVENANCE).read_text()))


def test_the_provenance_has_the_required_fields(original: TinyRelease) -> None:
    document = provenance(original)
    assert document["_type"] == "https://in-toto.io/Statement/v1"
    assert document["predicateType"] == "https://slsa.dev/provenance/v1"
    predicate = document["predicate"]
    assert predicate.keys() == {"buildDefinition", "runDetails"}
    definition = predicate["buildDefinition"]
    assert {"buildType", "externalParameters", "resolvedDependencies"} <= definition.keys()
    assert predicate["runDetails"]["builder"]["id"].startswith("urn:")
    subjects = {each["name"] for each in document["subject"]}
    assert subjects == set(FILES) - {SUMS, SIGNATURE, PROVENANCE}
    uris = [each["uri"] for each in definition["resolvedDependencies"]]
    assert uris == ["urn:venue-agent:source@refs/tags/v1.2.3", "pkg:pypi/h11@0.16.0"]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("pkg:pypi/h11@0.16.0", "pkg:pypi/h11@0.15.0", "is not in the requirements of v1.2.3"),
        ('"tag": "v1.2.3"', '"tag": "v9.9.9"', "is about v9.9.9, not v1.2.3"),
        ("provenance/v1", "provenance/v9", "an unknown type of statement"),
        (f'"name": "{NOTES}"', '"name": "x"', f"does not describe {NOTES}"),
        ('"subject"', '"object"', "cannot be read"),
    ],
)
def test_a_provenance_that_does_not_match_is_refused(
    tiny: TinyRelease, old: str, new: str, expected: str
) -> None:
    change(tiny.directory / PROVENANCE, old, new)
    tiny.sign_again()
    assert any(expected in line for line in problems(tiny))


def test_notes_that_differ_from_the_changelog_are_refused(tiny: TinyRelease) -> None:
    (tiny.directory / NOTES).write_text("- Nothing.\n")
    tiny.sign_again()
    assert f"{NOTES}: not the section of CHANGELOG.md at v1.2.3" in problems(tiny)


def test_a_tag_that_names_another_commit_is_refused(tiny: TinyRelease, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    shutil.copytree(tiny.checkout, clone)
    git(clone, "commit", "--quiet", "--allow-empty", "--message", "later")
    git(clone, "tag", "--force", "v1.2.3")
    (line,) = problems(replace(tiny, checkout=clone))
    assert line.startswith("v1.2.3: in this clone, the tag names the commit")


def test_content_is_not_read_if_its_checksum_is_wrong(tiny: TinyRelease) -> None:
    (tiny.directory / DEB).write_bytes(b"!<arch>\n")
    lines = problems(tiny)
    assert lines == [f"{DEB}: the content does not match SHA256SUMS"]


def test_contents_of_a_package_include_its_control_files(original: TinyRelease) -> None:
    names = contents(original.directory / DEB).keys()
    assert names == {"DEBIAN/control", "usr/lib/venue-agent/venue-agent"}


def wheel() -> bytes:
    """Return a wheel with one compressed file."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("a.py"), "import this\n" * 9, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def rpm(*files: tuple[str, int, int, bytes]) -> bytes:
    """Return an RPM package without metadata.

    Args:
        files: The name, inode, number of links and content of each file.
    """
    archive = b""  # in the format "newc" of cpio(5)
    for name, inode, links, content in (*files, ("TRAILER!!!", 0, 1, b"")):
        numbers = (inode, 0o100644, 0, 0, links, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0)
        entry = b"070701" + b"".join(b"%08x" % number for number in numbers) + name.encode() + b"\0"
        archive += entry + bytes(-len(entry) % 4) + content + bytes(-len(content) % 4)
    empty = b"\x8e\xad\xe8\x01" + bytes(4)
    signatures = empty + struct.pack(">II", 1, 3) + bytes(16 + 3)
    header = empty + struct.pack(">II", 0, 1) + bytes(1)
    # 96 bytes of lead, the signatures, the header, and the compressed archive
    return bytes(96) + signatures + bytes(-len(signatures) % 8) + header + lzma.compress(archive)


def test_contents_of_an_rpm_include_both_names_of_a_linked_file(tmp_path: Path) -> None:
    package = tmp_path / "tiny.rpm"
    package.write_bytes(
        rpm(("./a", 1, 1, b"first"), ("./b", 2, 2, b""), ("./usr/c", 2, 2, b"both"))
    )
    assert contents(package) == {"a": b"first", "b": b"both", "usr/c": b"both"}


@pytest.mark.parametrize("length", range(0, 270, 30))
def test_an_rpm_that_ends_early_is_refused(length: int, tmp_path: Path) -> None:
    package = tmp_path / "tiny.rpm"
    package.write_bytes(rpm(("./a", 1, 1, b"first"))[:length])
    with pytest.raises(ValueError, match=r"cannot be unpacked|not an? (RPM|cpio)"):
        contents(package)


def test_a_wheel_with_a_changed_byte_raises_only_the_documented_error(tmp_path: Path) -> None:
    content, package, refused_count = wheel(), tmp_path / "tiny.whl", 0
    for position in range(len(content)):
        package.write_bytes(
            content[:position] + bytes([content[position] ^ 0x21]) + content[position + 1 :]
        )
        try:
            contents(package)
        except ValueError:
            refused_count += 1
    # ZIP does not check all bytes: a changed timestamp, for example, is accepted.
    assert refused_count > len(content) / 4


@pytest.mark.parametrize("damaged", [None, DEB, SUMS])
def test_the_two_documented_commands_verify_a_download(
    tiny: TinyRelease, damaged: str | None
) -> None:
    page = (ROOT / "docs/release.md").read_text()
    block = re.search(r"^## Verify a download\n.*?```sh\n(.*?)```", page, re.M | re.S)
    assert block is not None
    commands = block[1].splitlines()
    assert len(commands) == 2
    shutil.copy(tiny.signers, tiny.directory.parent / "allowed_signers")
    (tiny.directory / "Containerfile").unlink()  # not downloaded
    if damaged is not None:
        with (tiny.directory / damaged).open("ab") as file:
            file.write(b"\n")
    run = ("sh", "-c", " && ".join(commands))
    done = subprocess.run(run, cwd=tiny.directory, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == (damaged is None)
    assert ('Good "venue-agent-release" signature' in done.stdout) == (damaged != SUMS)


def test_a_rebuild_with_different_bytes_or_tools_is_refused(
    tiny: TinyRelease, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bash = {"name": "bash", "version": "5", "architecture": "amd64", "sha256": "0" * 64}
    root = Root(tmp_path, {"packages": [bash]})

    def build(
        source: Source, _: Root, target: Path, targets: list[str], machine_targets: list[str]
    ) -> None:
        assert (source.commit, targets, machine_targets) == (tiny.source.commit, ["deb"], [])
        shutil.copytree(tiny.directory, target)
        (target / DEB).write_bytes(deb("intruder"))
        (target / "Containerfile").unlink()

    monkeypatch.setattr("release.verify.prepare_root", lambda *_: root)
    monkeypatch.setattr("release.verify.build_release", build)
    lines, _ = differences_from_rebuild(tiny.directory, tiny.checkout, tmp_path, "mirror")
    snapshot = "http://snapshot.debian.org/archive/debian/20261123T000000Z"
    assert lines[:2] == [
        "Debian: the release was built without pkg:deb/debian/bash@5?arch=amd64",
        f"Debian: to build with the same packages, set MIRROR={snapshot}",
    ]
    assert f"{DEB}: the rebuild has different bytes" in lines
    assert "Containerfile: not built by the rebuild" in lines


def test_the_command_prints_one_line_per_difference(
    tiny: TinyRelease, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("release.verify.ROOT", tiny.checkout)
    words = ["verify", str(tiny.directory), "--signers", str(tiny.signers), "--no-rebuild"]
    monkeypatch.setattr("sys.argv", words)
    assert main() == 0
    expected = "ok  signature, 8 checksums, provenance and bills of materials\n"
    assert capsys.readouterr().out == expected
    (tiny.directory / DEB).unlink()
    assert main() == 1
    assert capsys.readouterr().out == f"{DEB}: missing\n"
