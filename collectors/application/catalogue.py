"""Which sources there are on which platform."""

from collectors.application.source import Source
from collectors.contract import ApplicationJob


def sources_for(platform: str, job: ApplicationJob) -> tuple[Source, ...]:
    """The sources of ``platform`` (as sys.platform), in the order their facts are listed."""
    if platform == "darwin":
        from collectors.application.macos.catalogue import macos_sources  # noqa: PLC0415

        return macos_sources(job)
    if platform == "win32":
        from collectors.application.windows.catalogue import windows_sources  # noqa: PLC0415

        return windows_sources(job)
    from collectors.application.linux.catalogue import linux_sources  # noqa: PLC0415

    return linux_sources(job)
