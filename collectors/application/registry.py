"""Which sources there are on which platform, and so which keys every snapshot holds."""

from pathlib import Path

from collectors.application.linux import drives, smart
from collectors.application.linux.registry import linux_sources
from collectors.application.macos.registry import macos_sources
from collectors.application.source import Source, unsupported_source
from collectors.application.windows.registry import windows_sources
from collectors.contract import ApplicationJob


def sources_for(
    platform: str, job: ApplicationJob, ask_drive: smart.AskDrive = smart.read_health
) -> tuple[Source[[]], ...]:
    """The sources of ``platform`` (as sys.platform), in the order their facts are listed.

    A key that only readers of other platforms own stands in its snapshot as unsupported.
    """
    linux = linux_sources(job, ask_drive=ask_drive)
    others = {"darwin": macos_sources(job), "win32": windows_sources(job)}
    own = others.get(platform, linux)
    known = {key for source in own for key in source.keys}
    every = (source for sources in (linux, *others.values()) for source in sources)
    foreign = dict.fromkeys(key for source in every for key in source.keys if key not in known)
    reason = "this operating system has no way to tell it"
    return (*own, unsupported_source("other systems", tuple(foreign), reason)) if foreign else own


def sources_before_confinement(platform: str, job: ApplicationJob) -> tuple[Source[[]], ...]:
    """The sources, with those already asked that need what the process is about to give up."""
    if platform != "linux":
        return sources_for(platform, job)
    return sources_for(platform, job, smart.asked_now(drives.drives_with_a_verdict(Path("/"))))
