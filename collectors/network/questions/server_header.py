"""Recognises Server headers that name a device. No I/O.

This module is separate from page_title.py, so that it can be imported without the libraries for
web pages.
"""

import re

_DEVICE = re.compile(
    r"cam(era)?\b|ipcam|dvr|nvr|hikvision|video web|cross web|print|cups|km-mfp|canon|epson|"
    r"lexmark|xerox|ricoh|debut/|hp-chai|axis|mikrotik|routeros|cisco|fritz!|netgear|zyxel|draytek|"
    r"asuswrt|tomato|openwrt|huawei|sonicwall|\b(tl|td|dir|dsl|wnr)-?\w*\d|tp-link|router|telephone|"
    r"yealink|polycom|grandstream|sonos|roku|tasmota|shelly|wled|synology|qnap|lights-out|"
    r"ilo-server|idrac",
    re.IGNORECASE,
)


def parse_product(server: str | None) -> str | None:
    """Return a Server header that names a device; None if it only names server software."""
    return server if server and _DEVICE.search(server) else None
