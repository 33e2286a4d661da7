"""Which sources there are on which platform."""

from collectors.application import portable
from collectors.application.source import Source
from collectors.contract import ApplicationJob


def sources_for(platform: str, job: ApplicationJob) -> tuple[Source, ...]:
    """The sources of ``platform`` (as sys.platform), in the order their facts are listed."""
    if platform == "linux":
        from collectors.application.linux.catalogue import linux_sources  # noqa: PLC0415

        return (*linux_sources(job), *portable.shared_sources(job))
    return portable.shared_sources(job)
