"""Makes a signed release of the checked-out commit. docs/release.md describes how.

Usage: python -m release.make --key KEY --targets "deb ..." [--machine-targets "..."]
           [--signers FILE] [--cache DIR] [--output DIR] [--mirror URL]
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from release import ROOT, SUMS, ReleaseError
from release.building import build_release
from release.checksums import PRINCIPAL, public_key, public_key_is_listed, sign
from release.clean_root import DEFAULT_MIRROR, prepare_root
from release.source import source_to_release
from release.verify import differences


def check_key(key: Path | None, signers: Path) -> Path:
    """Return the key. Raises ReleaseError if it is missing or not in the file ``signers``."""
    if key is None:
        raise ReleaseError("Set KEY to the SSH key that signs the release: make release KEY=path")
    if not public_key_is_listed(key, signers):
        line = f'{PRINCIPAL} namespaces="venue-agent-release" {public_key(key)}'
        raise ReleaseError(f"The key {key} is not listed in {signers}. Add this line:\n{line}")
    return key


def main() -> int:
    parser = argparse.ArgumentParser(description="Make a signed release.")
    parser.add_argument("--key", default="")
    parser.add_argument("--signers", type=Path, default=ROOT / "packaging/release/allowed_signers")
    parser.add_argument("--cache", type=Path, default=ROOT / "build/release")
    parser.add_argument("--output", type=Path, default=ROOT / "dist/release")
    parser.add_argument("--mirror", default=DEFAULT_MIRROR)
    parser.add_argument("--targets", type=str.split, required=True)
    parser.add_argument("--machine-targets", type=str.split, default=[])
    options = parser.parse_args()
    try:
        source = source_to_release()
        key = check_key(Path(options.key) if options.key else None, options.signers)
        target = options.output.absolute() / source.version
        if target.exists():
            raise ReleaseError(f"{target} exists. Remove it to make the release again.")
        root = prepare_root(options.cache.absolute(), options.mirror)
        with tempfile.TemporaryDirectory(prefix="made-", dir=options.cache) as name:
            new_release = Path(name) / source.version
            build_release(source, root, new_release, options.targets, options.machine_targets)
            sign(new_release, key)
            if lines := differences(new_release, options.signers, ROOT):
                raise ReleaseError("\n".join(lines))
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(new_release, target)
    except ReleaseError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{(target / SUMS).read_text()}{target}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
