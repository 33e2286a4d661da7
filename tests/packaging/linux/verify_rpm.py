"""Installs, upgrades and erases the RPM packages: in a root without a running system, and with dnf
from a signed repository in a container with a real systemd.

The root is that of `verify_apt`: a Debian with rpm and dnf. The container's only network is
loopback. The commands are those of docs/install.md. Needs root, debootstrap, systemd-nspawn, rpm,
createrepo-c, checkpolicy, semodule-utils, gpg, and the directories that `make onedir` and
`make service-onedir` build.

Usage: python -m tests.packaging.linux.verify_rpm
"""

import contextlib
import json
import os
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from release.contents import contents, digests

from tests.packaging.linux import rpms
from tests.packaging.linux.machine import (
    REPOSITORY_HOST,
    boot_and_report,
    make_certificate,
    prepare,
    scratch,
    signing_key,
)
from tests.packaging.linux.verify_apt import flip_bit
from tests.packaging.verify_bare import run
from tests.paths import ROOT

PUBLISH: Final = ROOT / "packaging/rpm/publish.py"
URL: Final = f"https://{REPOSITORY_HOST}/dnf"
UNITS: Final = ("venue-agent.service", "venue-agent-key.path", "venue-control.service")
MARK: Final = "# changed by the administrator\n"


@contextlib.contextmanager
def temporary_root(place: Path) -> Iterator[Path]:
    """Mount a temporary overlay over the root that `prepare` returns. Yield the mount point."""
    memory = place / "memory"
    memory.mkdir()
    run("mount", "-t", "tmpfs", "-o", "size=1500m", "venue-rpm-test", memory)
    try:
        for name in ("upper", "work", "root"):
            (memory / name).mkdir()
        layers = f"lowerdir={prepare()},upperdir={memory}/upper,workdir={memory}/work"
        run("mount", "-t", "overlay", "-o", layers, "venue-rpm-test", memory / "root")
        try:
            yield memory / "root"
        finally:
            run("umount", memory / "root")
    finally:
        run("umount", memory)


class OfflineRoot:
    """A root directory in which no systemd runs, as in a build of an image."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def rpm(self, *words: str | Path, expect: int = 0) -> str:
        done = subprocess.run(
            ("rpm", f"--root={self.root}", "--force-debian", *words),
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == expect, (words, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def inside(self, *words: str, expect: int = 0) -> str:
        done = subprocess.run(
            ("chroot", self.root, *words), capture_output=True, text=True, check=False
        )
        assert done.returncode == expect, (words, done.stdout, done.stderr)
        return done.stdout

    def enabled(self) -> set[str]:
        wants = self.root / "etc/systemd/system/multi-user.target.wants"
        return {name for name in UNITS if (wants / name).is_symlink()}

    def mode_and_owner(self, path: str) -> tuple[str, str]:
        """Return the mode of a file, and its owner and group as ``OWNER:GROUP``."""
        mode = stat.filemode((self.root / path).lstat().st_mode)
        return mode, self.inside("stat", "--format=%U:%G", f"/{path}").strip()


def verify_contents(package: Path) -> None:
    """Check that `contents`, which reads the package for the bill of materials, returns the same
    files as rpm.
    """
    query = ("rpm", "-qp", "--nosignature", "--queryformat", "[%{FILENAMES} %{FILEDIGESTS}\n]")
    output = subprocess.run((*query, package), capture_output=True, text=True, check=True).stdout
    rows = (line.split() for line in output.splitlines())
    files = {row[0].removeprefix("/"): row[1] for row in rows if len(row) == 2}
    assert digests(contents(package)) == files
    print_ok(f"{package.name}: its {len(files)} files can be read without rpm")


def verify_dependencies(offline: OfflineRoot, agent: Path, place: Path) -> None:
    output = offline.rpm("--install", agent, expect=1)
    assert "libc.so.6(GLIBC_" in output, output
    offline.rpm("--install", rpms.build_system(place, "2.34"))
    output = offline.rpm("--install", agent, expect=1)
    glibc = output.partition("libc.so.6(GLIBC_")[2].partition(")")[0]
    print_ok(f"with glibc 2.34, as in RHEL 9: refused, because the agent needs {glibc}")
    offline.rpm("--upgrade", rpms.build_system(place, glibc))


def verify_agent(offline: OfflineRoot, first: Path, upgrade: Path) -> None:
    root = offline.root
    output = offline.rpm("--install", first)
    assert "venue-agent service install" in output, output
    assert offline.rpm("--verify", "venue-agent") == ""
    paths = offline.rpm("--query", "--list", "venue-agent").split()
    foreign_files = [path for path in paths if offline.mode_and_owner(path[1:])[1] != "root:root"]
    assert not foreign_files, foreign_files
    assert offline.enabled() == {"venue-agent.service", "venue-agent-key.path"}
    offline.inside("getent", "passwd", "venue-agent")
    version = offline.inside("venue-agent", "--version").strip()
    print_ok(f"{version}: {len(paths)} files owned by root, user created, enabled")

    config, state = root / "etc/venue-agent/config.toml", root / "var/lib/venue-agent"
    config.write_text(MARK)
    state.mkdir()
    (state / "identity.pem").write_text("")
    offline.inside("systemctl", "disable", "venue-agent-key.path")
    output = offline.rpm("--upgrade", upgrade)
    assert output == "", output
    assert config.read_text() == MARK
    assert offline.mode_and_owner("etc/venue-agent/config.toml")[1] == "root:venue-agent"
    assert offline.enabled() == {"venue-agent.service"}, "an upgrade must not enable units again"
    assert offline.rpm("--query", "venue-agent").startswith(f"venue-agent-{rpms.NEXT}")
    assert str((root / "usr/lib/venue-agent.current").readlink()) == "venue-agent"
    kept_version = root / "usr/lib/venue-agent.previous/version"
    assert f"venue-agent {kept_version.read_text().strip()}" == version
    print_ok("upgraded: configuration and previous version kept, a disabled unit stays disabled")

    offline.rpm("--upgrade", "--oldpackage", first)
    offline.rpm("--erase", "venue-agent")
    assert config.read_text() == MARK
    assert (state / "identity.pem").exists()
    assert offline.enabled() == set()
    removed_paths = (
        "usr/lib/venue-agent",
        "usr/lib/venue-agent.current",
        "usr/lib/venue-agent.previous",
        "var/lib/venue-agent-upgrade",
        "usr/bin/venue-agent",
        "usr/share/doc/venue-agent",
        "usr/share/licenses/venue-agent",
        "etc/systemd/system/venue-agent.service.d",
    )
    leftovers = [
        path for path in removed_paths if (root / path).exists() or (root / path).is_symlink()
    ]
    assert not leftovers, leftovers
    print_ok("downgraded and erased: configuration, state and user stay, nothing else")


def verify_service(offline: OfflineRoot, first: Path, upgrade: Path) -> None:
    options_file = offline.root / "etc/venue-control/serve.conf"
    offline.rpm("--install", first)
    assert offline.rpm("--verify", "venue-control") == ""
    assert offline.mode_and_owner("etc/venue-control/serve.conf") == (
        "-rw-r-----",
        "root:venue-control",
    )
    assert offline.enabled() == {"venue-control.service"}
    options_file.write_text(MARK + options_file.read_text())
    offline.rpm("--upgrade", upgrade)
    assert options_file.read_text().startswith(MARK)
    offline.rpm("--erase", "venue-control")
    saved_file = options_file.with_name("serve.conf.rpmsave")
    assert saved_file.read_text().startswith(MARK)
    offline.rpm("--install", upgrade)
    offline.rpm("--erase", "venue-control")
    assert not options_file.exists(), "an unchanged configuration must be deleted"
    print_ok("venue-control: upgrades keep a changed serve.conf, and erasing saves it as .rpmsave")


def verify_policy(offline: OfflineRoot, agent: Path, policy: Path) -> None:
    """Link the policy module with Debian's reference policy. Nothing enforces it here."""
    offline.rpm("--install", agent, policy)
    assert "venue_agent" in offline.inside("semodule", "--list-modules").split()
    (policy_file,) = (offline.root / "etc/selinux/default/policy").glob("policy.*")
    words = (f"/{policy_file.relative_to(offline.root)}",)
    rules = offline.inside("sesearch", "--allow", "--source=venue_agent_t", *words)
    assert "allow venue_agent_t port_type:tcp_socket name_connect;" in rules
    assert "name_bind" not in offline.inside(
        "sesearch", "--allow", "--source=venue_agent_t", "--class=tcp_socket", "--perm=name_bind",
        *words,
    )  # fmt: skip
    assert "venue_agent_t" in offline.inside("seinfo", "--permissive", "-x", *words)
    offline.rpm("--erase", "venue-agent-selinux", "venue-agent")
    assert "venue_agent" not in offline.inside("semodule", "--list-modules").split()
    print_ok("the SELinux policy: linked with a reference policy, permissive, removed when erased")


def publish(key: str, output: Path, *packages: Path) -> None:
    subprocess.run(
        (sys.executable, PUBLISH, "--key", key, "--url", URL, "--output", output, *packages),
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip


def make_sites(
    results: Path, place: Path, first: list[Path], upgrade: list[Path], broken: Path
) -> None:
    """Create a directory for each state of the repository. The container uses one after another."""
    sites = results / "sites"

    def copy_site(name: str, source: str) -> Path:
        shutil.copytree(sites / source / "dnf", sites / name / "dnf")
        return sites / name / "dnf"

    with signing_key(place, "other@example.com") as other:
        publish(other, sites / "another-key/dnf", *first, *upgrade)
    with signing_key(place) as key:
        publish(key, sites / "first/dnf", *first)
        publish(key, copy_site("newer", "first"), *first, *upgrade)
        publish(key, copy_site("broken", "newer"), *first, *upgrade, broken)
        unsigned_site = copy_site("unsigned-package", "newer")
        package_copy = Path(shutil.copy(upgrade[0], unsigned_site / "packages"))
        # createrepo_c reads a package again only if its time or size has changed.
        os.utime(package_copy, (0, 0))
        publish(key, unsigned_site, *upgrade)
    for package in (copy_site("changed-package", "newer") / "packages").glob("venue-agent-99*"):
        flip_bit(package)
    flip_bit(copy_site("changed-index", "newer") / "repodata/repomd.xml")
    # The index of the attacker has the right hashes, and our signature of a different index.
    signature = copy_site("another-index", "another-key") / "repodata/repomd.xml.asc"
    shutil.copy(sites / "newer/dnf/repodata/repomd.xml.asc", signature)


def print_ok(text: str) -> None:
    sys.stdout.write(f"ok  {text}\n")
    sys.stdout.flush()


def main() -> int:
    began = time.monotonic()
    with scratch("rpm") as place:
        results, second_build = place / "results", place / "again"
        packages = results / "packages"
        packages.mkdir(parents=True)
        agent, policy = rpms.build("venue-agent", packages)
        (control,) = rpms.build("venue-control", packages)
        for package in rpms.build("venue-agent", second_build):
            assert package.read_bytes() == (packages / package.name).read_bytes(), package.name
        print_ok("two builds of the same directory: the same bytes")
        for package in (agent, policy, control):
            verify_contents(package)
        newer_agent, newer_policy = rpms.build("venue-agent", packages / "next", rpms.NEXT)
        (newer_control,) = rpms.build("venue-control", packages / "next", rpms.NEXT)
        with temporary_root(place) as root:
            offline = OfflineRoot(root)
            verify_dependencies(offline, agent, packages)
            verify_agent(offline, agent, newer_agent)
            verify_service(offline, control, newer_control)
            verify_policy(offline, agent, policy)
        make_certificate(results)
        make_sites(
            results, place, [agent, policy, control], [newer_agent, newer_policy, newer_control],
            rpms.build_broken(place, packages / "broken"),
        )  # fmt: skip
        code = boot_and_report("tests.packaging.linux.inside_rpm", results)
    sys.stdout.write(json.dumps({"exit": code, "seconds": round(time.monotonic() - began, 1)}))
    sys.stdout.write("\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
