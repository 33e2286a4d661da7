"""Records calls of a running service as Markdown, without random values.

Random ids and secrets differ from run to run. Each random id is replaced with a constant id.
Secrets and cursors are shortened.
"""

import json
import re
import uuid
from dataclasses import dataclass, field
from typing import Any, Final

import httpx2

from controlplane.sandbox.plan import NAMESPACE
from tests.contract.service.layout import MORE, format_json
from tests.unit.controlplane.running_service import RunningService

Json = dict[str, Any]
UNKNOWN_ID: Final = uuid.UUID(int=0)
"""An id that does not exist."""
NOT_LISTED: Final = "not shown"
"""Title of the calls that are not examples. Only their replies are used."""
OTHER_ORGANIZATION: Final = "org-0002"
"""An organization whose sales began recently."""
FACADE: Final = "/api/public/"
_RANDOM_ID: Final = re.compile(
    r"\b[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
)
_REPLACEMENTS: Final = {
    "access_token": "eyJ…",
    "refresh_token": MORE,
    "api_key": "venue_test_…",
    "trace_id": MORE,
    "nonce": MORE,
    "token": MORE,
    "signature": MORE,
}
"""Fields whose values are secret or random, and the text that replaces each value in an example."""
_LISTED_HEADERS: Final = ("Deprecation", "Link", "Retry-After", "WWW-Authenticate")
_CURSOR_VISIBLE: Final = 8
"""Number of characters of a cursor that an example shows."""
_CURSOR: Final = re.compile(rf"(cursor=[\w-]{{{_CURSOR_VISIBLE}}})[\w-]+")


@dataclass(slots=True)
class Recorder:
    """Calls the service, and stores the examples and the replies.

    ``texts`` maps the method and path of an operation, or the title of a call, to an example.
    ``replies`` has all replies. ``access_token`` is a token of the retail API.
    """

    service: RunningService
    access_token: str = ""
    texts: dict[str, str] = field(default_factory=dict)
    replies: list[httpx2.Response] = field(default_factory=list)
    _ids: dict[str, str] = field(default_factory=dict)

    async def call(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        query: str = "",
        title: str = "",
        secret: str | None = None,
        media_type: str = "application/json",
        http: httpx2.AsyncClient | None = None,
    ) -> Any:
        """Call the service, or the service behind ``http`` if it is given. Store the example.

        Args:
            title: the key of the example in ``texts``; by default the method and the path.
            secret: the credential. None means the default of the API that ``path`` belongs to, and
                an empty text means no credential.

        Returns the JSON of the reply, or None if the reply is empty.
        """
        default = self.service.write_key if path.startswith(FACADE) else self.access_token
        credential = default if secret is None else secret
        headers = {"authorization": f"Bearer {credential}"} if credential else {}
        if body is not None:
            headers["content-type"] = media_type
        content = None if body is None else json.dumps(body)
        reply = await (http or self.service.http).request(
            method, path + query, content=content, headers=headers
        )
        self.replies.append(reply)
        message = reply.json() if reply.content else None
        self.texts[title or f"{method} {path}"] = self._request(method, path + query, body) + (
            self._reply(reply, message)
        )
        return message

    def _request(self, method: str, target: str, body: Any) -> str:
        text = "" if body is None else "\n" + format_json(self._without_random(body))
        return f"```http\n{method} {self._without_random_text(target)}{text}\n```\n\n"

    def _reply(self, reply: httpx2.Response, reply_body: Any) -> str:
        headers = "".join(
            f"\n{name}: {reply.headers[name]}" for name in _LISTED_HEADERS if name in reply.headers
        )
        text = "\n" + format_json(self._without_random(reply_body)) if reply.content else ""
        return f"```http\n{reply.status_code} {reply.reason_phrase}{headers}{text}\n```\n"

    def _without_random(self, value: Any, name: str = "") -> Any:
        """Return a value without random parts."""
        if isinstance(value, dict):
            return {key: self._without_random(part, key) for key, part in value.items()}
        if isinstance(value, list):
            return [self._without_random(part) for part in value]
        if isinstance(value, str):
            if name in {"cursor", "nextCursor"} and len(value) > _CURSOR_VISIBLE:
                return value[:_CURSOR_VISIBLE] + MORE
            return _REPLACEMENTS.get(name) or self._without_random_text(value)
        return value

    def _without_random_text(self, text: str) -> str:
        text = _CURSOR.sub(rf"\1{MORE}", text)
        return _RANDOM_ID.sub(lambda match: self._id(match[0]), text)

    def _id(self, random: str) -> str:
        constant = str(uuid.uuid5(NAMESPACE, f"example {len(self._ids)}"))
        return self._ids.setdefault(random, constant)
