"""Adds RPM packages to a signed dnf repository: a directory that a static web server can serve.

Packages and index are signed. Older packages stay in the directory. See docs/repositories.md.

Usage: python packaging/rpm/publish.py --key KEY --url URL --output DIR PACKAGE...
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from openpgp import Key, find_key

KEY_FILE = "RPM-GPG-KEY-venue-agent"
_CONTENT_FORMAT = (
    "%{NAME} %{VERSION} %{RELEASE} %{ARCH} [%{FILENAMES} %{FILEDIGESTS} %{FILEUSERNAME}"
    " %{FILEGROUPNAME} %{FILEMODES}\n] [%{REQUIRES}\n] %{PREIN} %{POSTIN} %{PREUN} %{POSTUN}"
    " %{POSTTRANS}"
)
"""The query format of rpm(8) that prints the content of a package. The signature of the package is
not part of this content."""


def add_packages(packages: Iterable[Path], folder: Path, key: Key) -> None:
    """Sign the packages and copy them to ``folder``. Raises SystemExit if a published package would
    change: dnf would refuse or ignore it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for package in packages:
        published = folder / package.name
        if not published.exists():
            with tempfile.TemporaryDirectory(dir=folder) as directory:
                signed = Path(shutil.copy(package, directory))
                macros = (f"_gpg_name {key.fingerprint}", f"__gpg {shutil.which('gpg')}")
                options = (option for macro in macros for option in ("--define", macro))
                _run("rpmsign", *options, "--addsign", signed)
                signed.rename(published)
        elif _content(published) != _content(package):
            raise SystemExit(
                f"{package.name} is already published with other content."
                " Build the change with a new version."
            )


def repository_file(url: str) -> str:
    """Return the file for /etc/yum.repos.d."""
    return (
        "[venue-agent]\nname=Venue agent\n"
        f"baseurl={url}\nenabled=1\n"
        # The packages and the index must be signed. The key is a local file: with `-y`, dnf would
        # accept any key that the web server offers.
        f"gpgcheck=1\nrepo_gpgcheck=1\ngpgkey=file:///etc/pki/rpm-gpg/{KEY_FILE}\n"
    )


def publish(packages: Iterable[Path], output: Path, url: str, key: Key) -> None:
    add_packages(packages, output / "packages", key)
    # The index gets the current time, not the time of the commit.
    _run(
        "env", "--unset=SOURCE_DATE_EPOCH",
        "createrepo_c", "--quiet", "--no-database", "--update", "--retain-old-md=3", output,
    )  # fmt: skip
    index = output / "repodata/repomd.xml"
    signature = index.with_name("repomd.xml.asc.new")
    key.sign_detached(index, signature)
    signature.replace(index.with_name("repomd.xml.asc"))
    (output / KEY_FILE).write_text(key.armored)
    (output / "venue-agent.repo").write_text(repository_file(url))


def _content(package: Path) -> str:
    return _run("rpm", "-qp", "--nosignature", "--queryformat", _CONTENT_FORMAT, package)


def _run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{command[0]} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def main() -> int:
    parser = argparse.ArgumentParser(description="Publish packages in a signed dnf repository.")
    parser.add_argument("--key", required=True, help="fingerprint of the signing key")
    parser.add_argument("--url", required=True, help="address of the published directory")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("packages", type=Path, nargs="+")
    options = parser.parse_args()
    key = find_key(options.key)
    publish(options.packages, options.output, options.url, key)
    sys.stdout.write(f"{options.output}: signed with {key.fingerprint}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
