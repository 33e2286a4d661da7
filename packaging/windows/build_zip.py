"""Packs a PyInstaller directory into a zip file on Windows. Order and times of files are fixed.

Usage: python packaging/windows/build_zip.py ONEDIR VERSION OUTPUT_DIR
"""

import os
import platform
import sys
import time
import zipfile
from pathlib import Path

_OLDEST = 315_532_800  # 1980-01-01, the earliest time that a zip file can store


def pack(onedir: Path, target: Path) -> None:
    """Write every file of ``onedir`` into the folder ``venue-agent`` of the zip file."""
    epoch = max(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), _OLDEST)
    timestamp = time.gmtime(epoch)[:6]
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for file in sorted(path for path in onedir.rglob("*") if path.is_file()):
            name = (Path("venue-agent") / file.relative_to(onedir)).as_posix()
            archive.writestr(
                zipfile.ZipInfo(name, timestamp), file.read_bytes(), zipfile.ZIP_DEFLATED
            )


def main() -> int:
    onedir, version, output = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    if sys.platform != "win32":
        sys.stderr.write("The zip file can be built only on Windows.\n")
        return 1
    output.mkdir(parents=True, exist_ok=True)
    pack(onedir, output / f"venue-agent-{version}-{platform.machine().lower()}.zip")
    return 0


if __name__ == "__main__":
    sys.exit(main())
