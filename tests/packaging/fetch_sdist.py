"""Fetches the file of a source package from the configured index, without running its code.

`pip download` would run the package's ``setup.py`` to read its metadata. This script uses only two
parts of pip: the finder, which returns the address of the file, and the downloader.

Usage: python -m tests.packaging.fetch_sdist NAME VERSION FOLDER
"""

import sys
from optparse import Values
from pathlib import Path

from pip._internal.commands.download import DownloadCommand
from pip._internal.network.download import Downloader
from pip._vendor.packaging.specifiers import SpecifierSet


class FetchCommand(DownloadCommand):
    """A `pip download`, with the same options and configuration, that only fetches the file."""

    def run(self, options: Values, args: list[str]) -> int:
        name, version, folder = args
        options.format_control.disallow_binaries()
        session = self.get_default_session(options)
        finder = self._build_package_finder(options, session)
        best = finder.find_best_candidate(name, SpecifierSet(f"=={version}")).best_candidate
        if best is None:
            sys.stderr.write(f"the index has no source package {name} {version}\n")
            return 1
        file, _ = Downloader(session, "off")(best.link, folder)
        sys.stdout.write(f"{Path(file)}\n")
        return 0


if __name__ == "__main__":
    sys.exit(FetchCommand("download", "").main(["--quiet", *sys.argv[1:]]))
