"""The permissions of every kind of credential: the two tables of docs/accounts.md.

``yes`` means that the call succeeds. A number is the HTTP status of the refusal; instead of 403 and
404, the tools of the agent protocol return a JSON-RPC error. ``as restricted`` means that every
credential of the column gets what `LOCATIONS` states for restricted credentials, even if it is not
restricted. ``listed`` means that a list contains the object, ``hidden`` that it does not.
"""

from collections.abc import Mapping
from typing import Final, Literal

Target = Literal["own", "other", "foreign"]
TARGETS: Final[tuple[Target, ...]] = ("own", "other", "foreign")
"""Where the object of a call is.

``own`` is the location that restricted credentials have. ``other`` is another location of the same
organization. ``foreign`` is a location of another organization.
"""

OPERATIONS: Final = """\
| operations | key reads | key writes | viewer's key writes | owner's session \
| manager's session | viewer's session | OAuth token \
| retail reads | retail writes | none, invalid, ended |
|---|---|---|---|---|---|---|---|---|---|---|
| device reads | yes | yes | yes | yes | yes | yes | 401 | 401 | 401 | 401 |
| device writes | 403 | yes | 403 | yes | yes | 403 | 401 | 401 | 401 | 401 |
| operator reads | yes | yes | yes | yes | yes | yes | 401 | 401 | 401 | 401 |
| operator writes | 403 | yes | 403 | yes | yes | 403 | 401 | 401 | 401 | 401 |
| figures | yes | yes | yes | yes | yes | yes | 401 | 401 | 401 | 401 |
| console reads | yes | yes | yes | yes | yes | yes | 401 | 401 | 401 | 401 |
| console writes | 403 | yes | 403 | yes | yes | 403 | 401 | 401 | 401 | 401 |
| profile | 403 | 403 | 403 | yes | yes | yes | 401 | 401 | 401 | 401 |
| location settings | 403 | 403 | 403 | yes | yes | 403 | 401 | 401 | 401 | 401 |
| profile: create a key that writes | 403 | 403 | 403 | yes | yes | 403 | 401 | 401 | 401 | 401 |
| members, audit log | 403 | 403 | 403 | yes | 403 | 403 | 401 | 401 | 401 | 401 |
| tools that read | yes | yes | yes | 401 | 401 | 401 | yes | 401 | 401 | 401 |
| tools that write | 403 | yes | 403 | 401 | 401 | 401 | 403 | 401 | 401 | 401 |
| support reads | yes | yes | yes | yes | yes | yes | 401 | 401 | 401 | 401 |
| support writes | 403 | yes | 403 | yes | yes | as restricted | 401 | 401 | 401 | 401 |
| retail reads | 401 | 401 | 401 | 401 | 401 | 401 | 401 | yes | yes | 401 |
| retail writes | 401 | 401 | 401 | 401 | 401 | 401 | 401 | 403 | yes | 401 |
"""
"""Rows are kinds of operations, columns are kinds of credentials."""

LOCATIONS: Final = """\
| object of the call | own | other | foreign \
| restricted: own | restricted: other | restricted: foreign |
|---|---|---|---|---|---|---|
| nothing | yes | – | – | yes | – | – |
| an object of a location | yes | yes | 404 | yes | 403 | 404 |
| a location | yes | yes | 404 | yes | 403 | 403 |
| a location with sales | yes | yes | 404 | yes | 403 | 403 |
| a location id that need not exist | yes | yes | yes | yes | 403 | 403 |
| a list of objects of locations | listed | listed | hidden | listed | hidden | hidden |
| the newest device of the key | hidden | listed | hidden | listed | hidden | hidden |
| a list of objects of the organization | listed | – | hidden | listed | – | hidden |
| a catalog entry to change | yes | – | 404 | 403 | – | 403 |
| an organization to link with support | yes | – | 403 | 403 | – | 403 |
| a member or an invitation | yes | – | 404 | 403 | – | 403 |
| the organization | yes | – | – | 403 | – | – |
| a session, key or grant of a user | yes | 404 | 404 | yes | 404 | 404 |
| a support link to read | yes | – | 404 | yes | – | 404 |
| a support link to end | yes | – | 404 | 403 | – | 404 |
| an organization, or one of its goods | yes | – | 404 | yes | – | 404 |
"""
"""The result of an operation that `OPERATIONS` permits.

Rows are the objects that a call names or lists. Columns are the targets, see ``TARGETS``. The
``restricted`` columns are for a credential that is restricted to its own location.
"""


def permission_of(operations: str, column: str) -> str:
    """Return a cell of `OPERATIONS`."""
    return _OPERATIONS[operations][column]


def expected_at(rule: str, target: Target, *, is_restricted: bool) -> str:
    """Return a cell of `LOCATIONS`. ``–`` means that there is no such object at the target."""
    return _LOCATIONS[rule][f"restricted: {target}" if is_restricted else target]


def _read(table: str) -> Mapping[str, Mapping[str, str]]:
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    header, _, *rows = lines
    return {row[0]: dict(zip(header[1:], row[1:], strict=True)) for row in rows}


_OPERATIONS: Final = _read(OPERATIONS)
_LOCATIONS: Final = _read(LOCATIONS)
COLUMNS: Final = tuple(next(iter(_OPERATIONS.values())))
