"""The sources of the kiosk's facts.

The code that reads the facts of a source is imported when the source is read, not before.
"""

from pathlib import Path
from typing import Final

from collectors.application.deadline import Deadline
from collectors.application.kiosk.fields import BROWSER_KEYS, NO_KIOSK, PAGE_KEYS
from collectors.application.source import Fields, Origin, Reading, source

_POLICIES_KEY: Final = "kiosk.localNetworkPolicies"
_POLICIES_ORIGIN: Final = Origin("managed policies")
_BROWSER_ORIGIN: Final = Origin("kiosk browser")


@source("kiosk", _BROWSER_ORIGIN, *BROWSER_KEYS, in_browser=True)
def read_kiosk_browser(deadline: Deadline, url: str) -> Reading:
    if not url:
        return Reading(_BROWSER_ORIGIN.all_absent(BROWSER_KEYS, "not-applicable", NO_KIOSK))
    # This imports the WebSocket library, which costs memory and time.
    from collectors.application.kiosk.kiosk import read_kiosk

    return read_kiosk(url, deadline)


@source("kiosk page", _BROWSER_ORIGIN, *PAGE_KEYS)
def read_kiosk_page(deadline: Deadline, url: str) -> Reading:
    if not url:
        return Reading(_BROWSER_ORIGIN.all_absent(PAGE_KEYS, "not-applicable", NO_KIOSK))
    from collectors.application.kiosk.kiosk import read_page_state

    return read_page_state(url, deadline)


@source("kiosk policies", _POLICIES_ORIGIN, _POLICIES_KEY)
def read_kiosk_policies(_: Deadline, url: str, root: Path) -> Fields:
    """Read the policies. ``root`` is the root directory of the policy files, unused on Windows."""
    if not url:
        return (_POLICIES_ORIGIN.not_applicable(_POLICIES_KEY, NO_KIOSK),)
    from collectors.application.kiosk.policies import read_policies

    return (_POLICIES_ORIGIN.available(_POLICIES_KEY, read_policies(root)),)
