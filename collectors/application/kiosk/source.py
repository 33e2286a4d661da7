"""The browser fields as a source, without what only a machine with a kiosk needs."""

from collectors.application.deadline import Deadline
from collectors.application.kiosk.browser_fields import BROWSER_KEYS
from collectors.application.source import Reading, source


@source("kiosk", "kiosk browser", *BROWSER_KEYS, in_browser=True)
def read_kiosk_browser(deadline: Deadline, url: str) -> Reading:
    # The WebSocket library costs memory and time: not without a kiosk.
    from collectors.application.kiosk.kiosk import read_kiosk

    return read_kiosk(url, deadline)
