"""Builds an .rpm from the same PyInstaller directory, units and manual as the Debian package.

The same input creates the same bytes: owners, modes and the build host are fixed, and no file time
in the package is later than SOURCE_DATE_EPOCH. The agent's build also creates the package of its
SELinux policy.

Usage: python packaging/rpm/build_rpm.py --onedir DIR --manual DIR --output DIR [--version V]
       [--program venue-agent|venue-control] [--level 0-9]
"""

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "deb"))

from build_deb import (
    PROGRAMS,
    Program,
    add_upgrades,
    lay_out,
    maintainer_script,
    newest_glibc,
    read_options,
    set_modes,
)

RPM = Path(__file__).resolve().parent
ROOT = RPM.parents[1]
SCRIPTS = ("pre", "post", "preun", "postun", "posttrans")
POLICY = "venue_agent"
VERIFICATION = "venue-agent-upgrade.service"
ARCHITECTURES = ("x86_64", "aarch64")
# The result must not depend on the distribution of the build machine: no changes to binaries, no
# links to build ids, no name of the build host, and no time but SOURCE_DATE_EPOCH.
MACROS = {
    "__os_install_post": "%{nil}",
    "debug_package": "%{nil}",
    "_build_id_links": "none",
    "_buildhost": "reproducible",
    "_binary_filedigest_algorithm": "8",
    "use_source_date_epoch_as_buildtime": "1",
    "clamp_mtime_to_source_date_epoch": "1",
}

SPEC = """\
Name: {name}
Version: {version}
Release: 1
Summary: {summary}
License: Apache-2.0
AutoReqProv: no
Requires: libc.so.6(GLIBC_{glibc})(64bit)
Requires: systemd >= 247
Requires(pre): systemd
Requires(post): systemd
Requires(preun): systemd
Requires(postun): systemd
{recommends}
%description
{description}
{policy}
%install
cp -a {tree}/. %{{buildroot}}

{scripts}
%files
%defattr(-,root,root,-)
{files}
"""

POLICY_SPEC = """
%package selinux
Summary: SELinux policy of the venue agent
BuildArch: noarch
Requires: {name} = %{{version}}-%{{release}}
Requires(post): policycoreutils
Requires(postun): policycoreutils

%description selinux
Labels the agent's files and runs it in a domain of its own, which is
permissive: SELinux records what the policy does not allow, and refuses nothing.

%post selinux
{post}
%postun selinux
{postun}
%files selinux
%defattr(-,root,root,-)
/usr/share/selinux/packages/{policy}.pp
"""


def rpm_version(version: str) -> str:
    """Return a version in the form of RPM. ``1.0.0rc1`` becomes ``1.0.0~rc1``, which RPM sorts
    before ``1.0.0``. RPM forbids ``-`` in a version.
    """
    base = re.match(r"(?:\d|\.(?=\d))*", version)[0]
    rest = version[len(base) :].lstrip(".-~")
    return f"{base}~{rest}" if rest else base


def file_list(tree: Path, program: Program) -> list[str]:
    """Return the lines of %files. Directories of other packages, such as /usr/bin, are left out."""
    name = program.name
    lines = [
        f"/usr/lib/{name}",
        f"%doc /usr/share/doc/{name}",
        f"%license /usr/share/licenses/{name}",
        f"%dir /etc/{name}",
    ]
    listed_as_directories = (
        "usr/lib/" + name,
        "usr/share/doc/",
        "usr/share/licenses/",
        "usr/share/selinux/",
    )
    for path in sorted(tree.rglob("*")):
        relative = str(path.relative_to(tree))
        if (path.is_dir() and not path.is_symlink()) or relative.startswith(listed_as_directories):
            continue
        if relative.startswith("etc/"):
            # The service's configuration may contain the password of a database.
            lines.append(f"%attr(0640,root,{name}) %config(noreplace) /{relative}")
        else:
            lines.append(f"/{relative}")
    return lines


def lay_out_rpm(tree: Path, onedir: Path, manual: Path, program: Program) -> None:
    """Copy the package's files to their paths below ``tree``."""
    lay_out(tree, onedir, manual, program)
    if program.name == "venue-agent":
        add_upgrades(tree)
        # With this link, systemd starts the verification at boot. No command has to enable it.
        wants = tree / "usr/lib/systemd/system/multi-user.target.wants"
        wants.mkdir()
        (wants / VERIFICATION).symlink_to(f"../{VERIFICATION}")
    licenses = tree / "usr/share/licenses" / program.name
    licenses.mkdir(parents=True)
    (tree / "usr/share/doc" / program.name / "copyright").rename(licenses / "LICENSE")
    set_modes(tree)


def scripts_of(program: Program) -> str:
    """Return the scriptlets. ``@SYSUSERS@`` in them is replaced by the line of the program's user
    (sysusers.d(5)), and ``@VERSION@`` by the version of the package.
    """
    sysusers = (ROOT / program.resources / f"{program.name}.sysusers").read_text()
    (user,) = (line for line in sysusers.splitlines() if line and not line.startswith("#"))
    parts = []
    for script in SCRIPTS:
        file = RPM / program.name / script
        if file.exists():
            text = maintainer_script(file).removeprefix("#!/bin/sh\n").replace("@SYSUSERS@", user)
            # rpmbuild expands macros in scriptlets.
            text = text.replace("%", "%%").replace("@VERSION@", "%{version}")
            parts.append(f"%{script}\n{text}")
    return "\n".join(parts)


def compile_policy(directory: Path) -> Path:
    """Compile the SELinux policy module in ``directory``, and return its file."""
    module, package = directory / f"{POLICY}.mod", directory / f"{POLICY}.pp"
    source = RPM / "selinux" / POLICY
    _run("checkmodule", "-M", "-m", "-o", module, f"{source}.te")
    _run("semodule_package", "-o", package, "-m", module, "-f", f"{source}.fc")
    return package


def build(options: argparse.Namespace) -> list[Path]:
    """Build the packages, and return their paths. The options are those of `read_options`."""
    program = PROGRAMS[options.program]
    architecture = platform.machine()
    if architecture not in ARCHITECTURES:
        raise SystemExit(f"RPM packages for {architecture} are not supported.")
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        tree = directory / "tree"
        tree.mkdir()
        lay_out_rpm(tree, options.onedir, options.manual, program)
        policy = recommends = ""
        if program.name == "venue-agent":
            target = tree / f"usr/share/selinux/packages/{POLICY}.pp"
            target.parent.mkdir(parents=True)
            shutil.copyfile(compile_policy(directory), target)
            target.chmod(0o644)
            recommends = f"Recommends: ({program.name}-selinux if selinux-policy-targeted)\n"
            policy = POLICY_SPEC.format(
                name=program.name,
                policy=POLICY,
                post=(RPM / "selinux/post").read_text().removeprefix("#!/bin/sh\n"),
                postun=(RPM / "selinux/postun").read_text().removeprefix("#!/bin/sh\n"),
            )
        first, *rest = program.description.splitlines()
        spec = directory / f"{program.name}.spec"
        spec.write_text(
            SPEC.format(
                name=program.name,
                version=rpm_version(options.version),
                summary=first.removeprefix("Description: "),
                description="\n".join(line.strip() for line in rest),
                glibc=newest_glibc(tree),
                recommends=recommends,
                policy=policy,
                tree=tree,
                scripts=scripts_of(program),
                files="\n".join(file_list(tree, program)),
            )
        )
        payload = f"w{options.level}.xzdio"
        macros = {**MACROS, "_topdir": directory / "rpmbuild", "_binary_payload": payload}
        defines = [word for name, value in macros.items() for word in ("-D", f"{name} {value}")]
        _run("rpmbuild", "-bb", "--quiet", "--target", architecture, *defines, spec)
        options.output.mkdir(parents=True, exist_ok=True)
        rpms = sorted((directory / "rpmbuild/RPMS").rglob("*.rpm"))
        return [Path(shutil.copy(package, options.output)) for package in rpms]


def _run(*command: str | Path) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False,
            env={**os.environ, "XZ_DEFAULTS": "--threads=1", "LC_ALL": "C.UTF-8"},
        )  # fmt: skip
    except FileNotFoundError:
        raise SystemExit(
            f"{command[0]} is missing: install the packages rpm, checkpolicy and semodule-utils"
        ) from None
    if done.returncode != 0:
        raise SystemExit(f"{command[0]} failed:\n{done.stdout}{done.stderr}")


def main() -> int:
    packages = build(read_options("Build the RPM package."))
    sys.stdout.write("".join(f"{package}\n" for package in packages))
    return 0


if __name__ == "__main__":
    sys.exit(main())
