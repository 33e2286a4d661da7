"""Reads the name, model and role of a device from a service's name and TXT record. No I/O.

The TXT keys are those of the Bonjour Printing Specification, AirPlay, RAOP, the HomeKit Accessory
Protocol, Google Cast, and of makers' own service types.
"""

import re
from collections.abc import Mapping
from typing import Final

from collectors.network.matching.models import is_no_model
from collectors.network.observations import MdnsService

PRINT_SERVICES: Final = frozenset(
    {"_ipp._tcp", "_ipps._tcp", "_printer._tcp", "_pdl-datastream._tcp", "_privet._tcp"}
)

SHARED_QUEUE: Final = "shared queue"
"""The role of a computer that shares a print queue. The printer itself is a different device."""

_HOMEKIT: Final[Mapping[str, str]] = {
    "2": "bridge",
    "3": "fan",
    "4": "garage door",
    "5": "light",
    "6": "lock",
    "7": "outlet",
    "8": "switch",
    "9": "thermostat",
    "10": "sensor",
    "11": "security system",
    "12": "door",
    "13": "window",
    "14": "window covering",
    "15": "button",
    "16": "range extender",
    "17": "camera",
    "18": "video doorbell",
    "19": "air purifier",
    "20": "heater",
    "21": "air conditioner",
    "22": "humidifier",
    "23": "dehumidifier",
    "24": "screen",
    "25": "speaker",
    "26": "speaker",
    "27": "router",
    "28": "sprinkler",
    "29": "faucet",
    "30": "shower",
    "31": "screen",
    "32": "remote control",
    "33": "router",
    "34": "speaker",
    "35": "screen",
    "36": "screen",
}
"""Maps accessory categories (key "ci" of the HomeKit Accessory Protocol) to roles of the report."""

ROLES: Final = frozenset({SHARED_QUEUE, "screen", "speaker", *_HOMEKIT.values()})

_CAST_VIDEO: Final = 1 << 0
"""The bit of Google Cast's key "ca" for a device that shows video."""
_AIRPLAY_PICTURE: Final = 1 << 0 | 1 << 7 | 1 << 49
_AIRPLAY_AUDIO: Final = 1 << 9
"""The bits of AirPlay's keys "features" and "ft". The bits of `_AIRPLAY_PICTURE` are video, screen
mirroring, and video of version 2. `_AIRPLAY_AUDIO` is audio."""

_MODEL_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "_airplay._tcp": ("model",),
    "_companion-link._tcp": ("rpmd",),
    "_device-info._tcp": ("model",),
    "_elg._tcp": ("md",),
    "_esphomelib._tcp": ("project_name", "board"),
    "_googlecast._tcp": ("md",),
    "_hap._tcp": ("md",),
    "_heos-audio._tcp": ("model",),
    "_http._tcp": ("model",),
    "_hue._tcp": ("modelid",),
    "_hwenergy._tcp": ("product_name", "product_type"),
    "_mediaremotetv._tcp": ("modelname",),
    "_musc._tcp": ("model",),
    "_nanoleafapi._tcp": ("md",),
    "_qdiscover._tcp": ("displaymodel", "model"),
    "_raop._tcp": ("am", "model"),
    "_readynas._tcp": ("model",),
    "_shelly._tcp": ("app", "id"),
    "_soundtouch._tcp": ("model",),
    "_viziocast._tcp": ("mdl",),
}
"""The TXT keys that may contain the model, by service type. The first one with a model counts."""
_NAME_KEYS: Final[Mapping[str, str]] = {
    "_amzn-wplay._tcp": "n",
    "_esphomelib._tcp": "friendly_name",
    "_googlecast._tcp": "fn",
    "_viziocast._tcp": "name",
}
"""The TXT key that contains the name that users gave the device, by service type."""
_DRIVER = re.compile(
    r" foomatic\b.*| - (cups|ipp|gutenprint)\b.*|,? \(?(driverless|hpcups|hpijs|using)\b.*|, \d.*",
    re.IGNORECASE,
)
_MAC_BEFORE = re.compile(r"[0-9a-f]{12}@(?=.)", re.IGNORECASE)  # 0A1B2C3D4E5F@Bar
_MAC_AFTER = re.compile(r" \[[0-9a-f:]{17}\]$", re.IGNORECASE)  # till [0a:1b:2c:3d:4e:5f]
_APPLE = re.compile(r"[A-Za-z]+\d+,\d+")
_TECHNICAL = re.compile(
    r"[0-9a-f]{12}|([0-9a-f]{2}:){5}|[0-9a-f]{8}-[0-9a-f]{4}|RINCON_|^amzn\.", re.IGNORECASE
)


def txt_model(service: MdnsService) -> str | None:
    """Return the model that a TXT record gives, or None."""
    txt = dict(service.txt)
    candidates = (
        txt.get("ty", ""),
        _with_maker(txt, txt.get("usb_mdl", "")),
        txt.get("product", "").strip("()"),
        *(_with_maker(txt, txt.get(key, "")) for key in _MODEL_KEYS.get(service.type, ())),
    )
    return next((candidate for candidate in candidates if not is_no_model(candidate)), None)


def display_model(model: str) -> str | None:
    """Return a model without the text that drivers and spoolers append; None if nothing remains."""
    name = _DRIVER.sub("", model)
    return None if is_no_model(name) else name


def friendly_name(service: MdnsService) -> str:
    """Return the name that users gave the device, or else the instance name without a MAC."""
    name = dict(service.txt).get(_NAME_KEYS.get(service.type, ""), "")
    return name or _MAC_AFTER.sub("", _MAC_BEFORE.sub("", service.instance))


def is_technical(name: str) -> bool:
    """Return whether a name contains a MAC, a UUID or another generated id.

    Such a name was not given by a user.
    """
    return bool(_TECHNICAL.search(name))


def is_apple(model: str) -> bool:
    """Return whether a model is an identifier of Apple, such as ``iMac21,1``.

    The report gives no role for such a model: an Apple computer announces that it can show a
    phone's video, but it is not a screen.
    """
    return bool(_APPLE.fullmatch(model))


def role_of(service: MdnsService) -> str | None:
    """Return the role that the device announces (one of ``ROLES``), or None."""
    txt = dict(service.txt)
    if service.type in PRINT_SERVICES:
        queue = txt.get("rp", "").lstrip("/")
        is_shared = "printer-type" in txt or queue.startswith(("printers/", "classes/"))
        return SHARED_QUEUE if is_shared else None
    if service.type == "_hap._tcp":
        return _HOMEKIT.get(txt.get("ci", ""))
    if service.type == "_googlecast._tcp" and (capabilities := _flags(txt.get("ca", ""))):
        return "screen" if capabilities & _CAST_VIDEO else "speaker"
    if service.type in ("_airplay._tcp", "_raop._tcp"):
        features = _flags(txt.get("features") or txt.get("ft", ""))
        if features & _AIRPLAY_PICTURE:
            return "screen"
        return "speaker" if features & _AIRPLAY_AUDIO else None
    return None


def _with_maker(txt: Mapping[str, str], model: str) -> str:
    maker = next((txt[key] for key in ("usb_mfg", "vendor", "manufacturer") if txt.get(key)), "")
    if not model or not maker or model.lower().startswith(maker.lower()) or is_apple(model):
        return model
    return f"{maker} {model}"


def _flags(text: str) -> int:
    """Parse bit flags: ``4101``, ``0x445F8A00``, or ``0x445F8A00,0x1C340`` with the low half first.

    Returns 0 if the text has none of these forms.
    """
    try:
        low, _, high = text.partition(",")
        return int(low, 0) | (int(high, 0) << 32 if high else 0)
    except ValueError:
        return 0
