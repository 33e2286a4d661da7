"""Formats parts of the sentences about printers in a report: printer states and lists of names."""

import re
from collections.abc import Iterable, Sequence

STATE_WORDS = {  # RFC 8011, section 5.4.12, and PWG 5100.9
    "media-empty": "out of paper",
    "media-needed": "waits for paper",
    "media-low": "low on paper",
    "media-jam": "paper jam",
    "cover-open": "cover open",
    "door-open": "door open",
    "interlock-open": "a cover or door is open",
    "input-tray-missing": "paper tray missing",
    "output-tray-missing": "output tray missing",
    "output-area-full": "output tray full",
    "output-area-almost-full": "output tray nearly full",
    "toner-empty": "out of toner",
    "toner-low": "low on toner",
    "marker-supply-empty": "out of ink or toner",
    "marker-supply-low": "low on ink or toner",
    "marker-waste-full": "waste container full",
    "marker-waste-almost-full": "waste container nearly full",
    "developer-empty": "out of developer",
    "opc-life-over": "drum used up",
    "opc-near-eol": "drum nearly used up",
    "fuser-over-temp": "fuser too hot",
    "fuser-under-temp": "fuser too cold",
    "paused": "paused",
    "stopped-partly": "partly stopped",
    "shutdown": "shut down",
    "spool-area-full": "memory full",
    "timed-out": "timed out",
    "connecting-to-device": "still trying to connect",
    "offline": "offline",
    "identify-printer-requested": "asked to identify itself",
    "hold-new-jobs": "holds new jobs",
    "cups-missing-filter": "a part of its driver is missing",
    "cups-insecure-filter": "a part of its driver has unsafe permissions",
    "other": "another problem, see its panel",
}
_SEVERITY = re.compile(r"-(?:error|warning|report)\Z")
_LISTED_MAX = 4
_REASONS_MAX = 8


def state_words(reasons: Iterable[str]) -> tuple[str, ...]:
    """Return printer-state-reasons as English texts.

    If a reason is unknown, its text is the keyword with spaces instead of dashes.
    """
    plain = (_SEVERITY.sub("", reason) for reason in reasons)
    words = (STATE_WORDS.get(reason, reason.replace("-", " ")) for reason in plain)
    return tuple(dict.fromkeys(words))[:_REASONS_MAX]


def join_names(names: Sequence[str]) -> str:
    """Join names with commas and "and".

    Only the first four names are listed. The number of further names follows them.
    """
    parts = list(names[:_LISTED_MAX])
    if len(names) > _LISTED_MAX:
        parts.append(f"{len(names) - _LISTED_MAX} more")
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def sentence(*parts: str | None) -> str:
    """Join the parts with semicolons. After a question mark, a new sentence starts instead."""
    text = ""
    for part in filter(None, parts):
        if not text or text.endswith("?"):
            text += (" " if text else "") + part[:1].upper() + part[1:]
        else:
            text += f"; {part}"
    return text
