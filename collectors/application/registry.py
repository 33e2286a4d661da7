"""Which sources there are on which platform."""

from pathlib import Path

from collectors.application.source import Source
from collectors.contract import ApplicationJob


def sources_for(platform: str, job: ApplicationJob) -> tuple[Source, ...]:
    """The sources of ``platform`` (as sys.platform), in the order their facts are listed."""
    if platform == "darwin":
        from collectors.application.macos.registry import macos_sources

        return macos_sources(job)
    if platform == "win32":
        from collectors.application.windows.registry import windows_sources

        return windows_sources(job)
    from collectors.application.linux.registry import linux_sources

    return linux_sources(job)


def sources_before_confinement(platform: str, job: ApplicationJob) -> tuple[Source, ...]:
    """The sources, with those already asked that need what the process is about to give up."""
    if platform != "linux":
        return sources_for(platform, job)
    from collectors.application.linux import drives, smart
    from collectors.application.linux.registry import linux_sources

    root = Path("/")
    return linux_sources(job, root, smart.asked_now(drives.drives_with_a_verdict(root)))
