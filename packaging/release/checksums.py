"""The file SHA256SUMS of a release, and its signature by an SSH key (ssh-keygen(1), `-Y`)."""

import hashlib
import re
import subprocess
from pathlib import Path
from typing import Final

from release import SIGNATURE, SUMS, ReleaseError

NAMESPACE: Final = "venue-agent-release"
"""The namespace of the signature. A signature that the same key made for another purpose is
refused.
"""
PRINCIPAL: Final = "release@venue-agent"
"""The name of the signer in the file of allowed signers."""
_LINE: Final = re.compile(r"([0-9a-f]{64})  ([A-Za-z0-9][\w.+~-]*)")


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_sums(directory: Path) -> None:
    """Write SHA256SUMS: the checksums of all files but SHA256SUMS itself and its signature."""
    names = sorted(path.name for path in directory.iterdir() if path.name not in (SUMS, SIGNATURE))
    lines = (f"{digest(directory / name)}  {name}\n" for name in names)
    (directory / SUMS).write_text("".join(lines))


def differences_from_sums(directory: Path) -> list[str]:
    """Compare the files of the directory with SHA256SUMS. Return one line per difference."""
    try:
        text = (directory / SUMS).read_text()
    except (OSError, UnicodeDecodeError) as error:
        return [f"{SUMS}: cannot be read: {error}"]
    expected: dict[str, str] = {}
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match is None or match[2] in expected or match[2] in (SUMS, SIGNATURE):
            return [f"{SUMS}: invalid line: {line[:100]!r}"]
        expected[match[2]] = match[1]
    present = {path.name: path for path in directory.iterdir()} if directory.is_dir() else {}
    lines = [f"{name}: missing" for name in sorted(expected.keys() - present.keys())]
    extra = present.keys() - expected.keys() - {SUMS, SIGNATURE}
    lines += [f"{name}: not listed in {SUMS}" for name in sorted(extra)]
    for name in sorted(expected.keys() & present.keys()):
        path = present[name]
        if path.is_symlink() or not path.is_file():
            lines.append(f"{name}: not a regular file")
        elif digest(path) != expected[name]:
            lines.append(f"{name}: the content does not match {SUMS}")
    return lines


def sign(directory: Path, key: Path) -> None:
    """Sign SHA256SUMS with an SSH key.

    ``key`` is the file of the private key, or of the public key if the SSH agent has the private
    key.

    Raises:
        ReleaseError: ssh-keygen failed.
    """
    (directory / SIGNATURE).unlink(missing_ok=True)
    command = ("ssh-keygen", "-Y", "sign", "-f", str(key), "-n", NAMESPACE, str(directory / SUMS))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ReleaseError(f"The key {key} cannot sign: {done.stderr.strip()}")


def differences_from_signature(directory: Path, signers: Path) -> list[str]:
    """Check the signature of SHA256SUMS. Return one line if it is not by an allowed signer."""
    if not signers.is_file():
        return [f"{signers}: this list of allowed signers does not exist. Set SIGNERS=file"]
    if not (directory / SIGNATURE).is_file() or not (directory / SUMS).is_file():
        return [f"{SIGNATURE}: there is no signature"]
    command = (
        "ssh-keygen", "-Y", "verify", "-f", str(signers), "-I", PRINCIPAL, "-n", NAMESPACE,
        "-s", str(directory / SIGNATURE),
    )  # fmt: skip
    done = subprocess.run(
        command, input=(directory / SUMS).read_bytes(), capture_output=True, check=False
    )
    if done.returncode != 0:
        reason = (done.stdout + done.stderr).decode(errors="replace").strip().splitlines()
        return [f"{SIGNATURE}: not a valid signature by {PRINCIPAL}: {'; '.join(reason)}"]
    return []


def public_key_is_listed(key: Path, signers: Path) -> bool:
    """Return whether the public key of ``key`` may sign releases, according to ``signers``."""
    text = signers.read_text() if signers.is_file() else ""
    return any(public_key(key) in line for line in text.splitlines() if line.startswith(PRINCIPAL))


def public_key(key: Path) -> str:
    """Return the public key as ``TYPE BASE64``.

    Raises:
        ReleaseError: The file is no SSH key.
    """
    public = key if key.suffix == ".pub" else Path(f"{key}.pub")
    if public == key or public.exists():
        text = public.read_text()
    else:
        command = ("ssh-keygen", "-y", "-f", str(key))
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ReleaseError(f"The key {key} cannot be read: {done.stderr.strip()}")
        text = done.stdout
    return " ".join(text.split()[:2])
