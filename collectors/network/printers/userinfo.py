"""Removes the user and password that a URL may contain (RFC 3986, section 3.2.1)."""

import re
from typing import Final

# A URL that a user pasted may be invalid, because its password has `/`, `@`, `#` or `?`. So all
# text before the last `@` counts as user and password, unless it begins with a host and a path, as
# in `printer.local/queue@1`.
_HOST_PREFIX: Final = re.compile(
    r"(?:(?:[A-Za-z0-9_\-]++\.)++[A-Za-z0-9_\-]++\.?(?::\d{1,5})?+|\[[0-9A-Fa-f:.%]{2,64}\](?::\d{1,5})?"
    r"|[A-Za-z0-9_\-]++(?::(?:80|443|515|631|8080|8443|8631|9100))?+)?+[/?\#]"
)


def without_userinfo(url: str) -> str:
    """Return a URL, or ``host:port``, without user and password."""
    scheme, slashes, rest = url.partition("://")
    if not slashes:
        scheme, rest = "", url
    authority, separator, address = rest.rpartition("@")
    if not separator or _HOST_PREFIX.match(f"{authority}@"):
        return url
    return f"{scheme}{slashes}{address}"
