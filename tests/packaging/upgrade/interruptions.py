"""Where upgrades are interrupted: steps of `tracer`, and what is killed there."""

from dataclasses import dataclass
from typing import Final, Literal

Kill = Literal["all", "command", "script", "service", "power"]
"""What is killed: the package manager with its children; the command that makes the step; this
command and the scripts that run it; the agent; or the whole machine."""

KILLED: Final[dict[Kill, str]] = {
    "all": "dpkg and its children",
    "command": "the command",
    "script": "the script",
    "service": "the agent",
    "power": "power cut",
}

_LIB: Final = "/usr/lib/venue-agent"
_INFO: Final = "/var/lib/dpkg/info/venue-agent"
_RECORD: Final = "/var/lib/venue-agent-upgrade/upgrade"
_SCRIPT: Final = "sh:venue-agent-upgrade"


@dataclass(frozen=True, slots=True)
class Interruption:
    """One interruption.

    Args:
        text: what happens at this interruption.
        step: the name of the system call before which the tracer stops, as `tracer` defines it.
        traced: what runs under the tracer. ``dpkg``: the package manager. ``verification``: the
            verification of a version that works. ``roll-back``: the verification of a version
            that does not start.
    """

    text: str
    step: str
    kill: Kill
    traced: Literal["dpkg", "verification", "roll-back"] = "dpkg"


_DPKG: Final[tuple[tuple[str, str, tuple[Kill, ...]], ...]] = (
    ("before prerm", f"dpkg execve {_INFO}.prerm #1", ("all",)),
    ("before preinst", "dpkg execve /var/lib/dpkg/tmp.ci/preinst #1", ("all", "power")),
    ("copy: begins", "sh:preinst execve /usr/bin/cp #1", ("all", "script")),
    ("copy: half made", f"cp link {_LIB}.previous.new/_internal/base_library.zip #1",
     ("all", "command", "power")),
    ("copy: is renamed", f"mv rename {_LIB}.previous #1", ("all", "power")),
    ("record: is written", f"mv rename {_RECORD} #1", ("all", "script", "power")),
    ("kept version: is selected", f"mv rename {_LIB}.current #1", ("all", "command", "power")),
    ("program's link: is replaced", "mv rename /usr/bin/venue-agent #1", ("all", "power")),
    ("kept version: restart", "sh:preinst execve /usr/bin/deb-systemd-invoke #1",
     ("all", "script", "power")),
    ("unpack: first files", f"dpkg link {_LIB}/_internal/base_library.zip.dpkg-tmp #1",
     ("all", "service")),
    ("unpack: last file", f"dpkg link {_LIB}/venue-agent.dpkg-tmp #1", ("all", "power")),
    ("unpack: files are replaced", f"dpkg rename {_LIB}/_internal/base_library.zip #1",
     ("all", "service", "power")),
    ("unpack: program is replaced", f"dpkg rename {_LIB}/venue-agent #1", ("all", "power")),
    ("unpack: script is replaced", "dpkg rename /usr/libexec/venue-agent-upgrade #1", ("all",)),
    ("unpack: link is replaced", "dpkg rename /usr/bin/venue-agent #1", ("all", "power")),
    ("unpack: database", f"dpkg rename {_INFO}.postinst #1", ("all", "power")),
    ("unpack: backups are deleted", f"dpkg unlink {_LIB}/venue-agent.dpkg-tmp #1",
     ("all", "power")),
    ("before postinst", f"dpkg execve {_INFO}.postinst #1", ("all", "power")),
    ("postinst: units", "sh:venue-agent.postinst execve /usr/bin/deb-systemd-helper #1",
     ("all", "script")),
    ("new version: is selected", f"mv rename {_LIB}.current #3", ("all", "command", "power")),
    ("record: gets its start time", f"mv rename {_RECORD} #2", ("all", "power")),
    ("new version: restart", f"{_SCRIPT} execve /usr/bin/deb-systemd-invoke #1",
     ("all", "script", "service", "power")),
    ("verification: is started", f"{_SCRIPT} execve /usr/bin/systemctl #2",
     ("all", "service", "power")),
    ("database: installed", "dpkg rename /var/lib/dpkg/status #1", ("all", "power")),
)  # fmt: skip

INTERRUPTIONS: Final = (
    *(Interruption(text, step, kill) for text, step, kills in _DPKG for kill in kills),
    *(
        Interruption(f"verification: {text}", step, kill, "verification")
        for text, step in (
            ("begins", f"{_SCRIPT} execve /usr/bin/sed #1"),
            ("reads the status", "timeout execve /usr/bin/sed #1"),
            ("has succeeded", f"rm unlink {_RECORD} #1"),
        )
        for kill in ("script", "power")
    ),
    *(
        Interruption(f"roll-back: {text}", step, kill, "roll-back")
        for text, step in (
            ("record is written", f"mv rename {_RECORD} #1"),
            ("kept version is selected", f"mv rename {_LIB}.current #1"),
            ("kept version is started", f"{_SCRIPT} execve /usr/bin/cmp #1"),
        )
        for kill in ("script", "power")
    ),
)
