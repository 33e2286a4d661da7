"""One spelling for one JSON value, so that equal content has an equal hash."""

import hashlib
import json
from typing import Any


def canonical_json(value: Any) -> bytes:
    """Return UTF-8 JSON with sorted keys and no spaces (in the spirit of RFC 8785)."""
    text = json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return text.encode("utf-8", "surrogatepass")


def sha256_hex(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
