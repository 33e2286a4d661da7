"""Reads the record of an upgrade that is not verified yet, or that was rolled back.

The packages' script `venue-agent-upgrade` writes the record, and deletes it after a successful
upgrade. Root owns the file, and every user can read it.
"""

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

from agent.presentation.connectivity.sentences import time_text
from agent.presentation.humanize import parse_timestamp
from agent.redaction.known import redact

RECORD: Final = Path("/var/lib/venue-agent-upgrade/upgrade")
SELECTED: Final = Path("/usr/lib/venue-agent.current")
"""A link to the version that runs. While the package manager replaces files, it leads to `KEPT`."""
KEPT: Final = Path("/usr/lib/venue-agent.previous")
"""The directory of the previous version, which runs again if an upgrade fails."""
MAX_BYTES: Final = 10_000
_VERSION_MAX: Final = 100  # characters


@dataclass(frozen=True, slots=True)
class Upgrade:
    """An upgrade of the package.

    Args:
        state: "incomplete" if the package manager has not finished it, "pending" if the new version
            is not verified yet, "failed" if the old version was restored.
        reason: how the new version failed, such as ``did not start``.
        log: the last line in the log of the new version.
        at: when the upgrade began, or when the old version was restored, as ISO 8601 in UTC.
    """

    state: Literal["incomplete", "pending", "failed"]
    old_version: str
    new_version: str
    at: str
    reason: str = ""
    log: str = ""

    def describe(self, now: datetime | None = None) -> str:
        """Return a sentence for users about the upgrade."""
        today = (now or datetime.now(UTC)).astimezone()
        at = parse_timestamp(self.at)
        since = "" if at is None else f" since {time_text(at.astimezone(today.tzinfo), today)}"
        if self.state == "failed":
            return f"version {self.new_version} {self.reason}; {self.old_version} runs again{since}"
        if self.state == "incomplete":
            return f"the upgrade to {self.new_version} is not complete; {self.old_version} runs"
        return f"version {self.new_version} is being verified{since}"

    @property
    def advice(self) -> str:
        """Return what an administrator can do; "" if nothing."""
        if self.state == "failed":
            return "install a newer version, or install this package again to try once more"
        if self.state == "incomplete":
            return "install the package again; on Debian, first run `dpkg --configure -a`"
        return ""


def read_upgrade() -> Upgrade | None:
    """Return the upgrade; None if there is none or the record cannot be read."""
    try:
        with RECORD.open("rb") as file:
            text = file.read(MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return None
    fields = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    if fields.get("state") not in {"pending", "failed"}:
        return None
    is_incomplete = SELECTED.is_symlink() and SELECTED.readlink().name == KEPT.name
    pending: Literal["incomplete", "pending"] = "incomplete" if is_incomplete else "pending"
    return Upgrade(
        state="failed" if fields["state"] == "failed" else pending,
        old_version=fields.get("from", ""),
        new_version=fields.get("to", ""),
        at=fields.get("at", ""),
        reason=fields.get("reason", ""),
        log=redact(fields.get("log", "")),
    )


def upgrade_document() -> dict[str, str] | None:
    """Return the upgrade for `--json`; None if there is none."""
    upgrade = read_upgrade()
    return None if upgrade is None else asdict(upgrade)


def kept_version(upgrade: Upgrade | None) -> str | None:
    """Return the previous version that is kept on this machine; None if there is none."""
    if not KEPT.is_dir():
        return None
    if upgrade is not None:
        return upgrade.old_version
    try:
        return (KEPT / "version").read_text().strip()[:_VERSION_MAX] or "unknown"
    except (OSError, UnicodeDecodeError):
        return "unknown"
