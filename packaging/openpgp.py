"""Signs the indices of package repositories with a key in the user's GnuPG home."""

import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Key:
    """A signing key. ``armored`` is its public part."""

    fingerprint: str
    armored: str

    def sign_detached(self, file: Path, signature: Path) -> None:
        """Write an armored signature of ``file``."""
        _gpg("--local-user", self.fingerprint, "--digest-algo", "SHA256", "--armor",
             "--output", str(signature), "--detach-sign", str(file))  # fmt: skip

    def clear_sign(self, file: Path, signed: Path) -> None:
        """Write the text of ``file`` together with its signature."""
        _gpg("--local-user", self.fingerprint, "--digest-algo", "SHA256",
             "--output", str(signed), "--clear-sign", str(file))  # fmt: skip


def find_key(name: str) -> Key:
    """Return the secret key with this fingerprint or e-mail address. Raises SystemExit if there is
    none, or more than one.
    """
    key_list = _gpg("--with-colons", "--list-secret-keys", name)
    fingerprints = primary_fingerprints(key_list)
    if len(fingerprints) != 1:
        raise SystemExit(
            f"KEY={name}: {len(fingerprints)} secret keys in the GnuPG home match."
            " Set KEY to the fingerprint of one key."
        )
    armored = _gpg(
        "--armor", "--export-options", "export-minimal", "--export", fingerprints[0]
    )  # fmt: skip
    return Key(fingerprints[0], armored)


def primary_fingerprints(key_list: str) -> list[str]:
    """Return the fingerprints of the primary keys in the output of ``gpg --with-colons``."""
    fingerprints, is_primary = [], False
    for fields in (line.split(":") for line in key_list.splitlines()):
        if fields[0] == "fpr" and is_primary:
            fingerprints.append(fields[9])
        is_primary = fields[0] == "sec"
    return fingerprints


def _gpg(*arguments: str) -> str:
    done = subprocess.run(
        ("gpg", "--batch", "--yes", "--quiet", *arguments),
        capture_output=True,
        text=True,
        check=False,
    )
    # gpg --list-secret-keys also fails if no key matches. `find_key` reports this.
    if done.returncode != 0 and "--list-secret-keys" not in arguments:
        # The last argument but one is the action, such as --detach-sign.
        raise SystemExit(f"gpg {arguments[-2]} failed: {done.stderr.strip()}")
    return done.stdout
