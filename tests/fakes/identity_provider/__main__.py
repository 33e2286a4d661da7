"""Serves the fake identity provider on a free port of loopback, and prints its issuer.

``POST /control`` changes the state. ``/authorize`` shows no page and redirects at once, as if the
user of `State.claims` had already signed in and consented.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from joserfc.jwk import KeySet

from tests.fakes.identity_provider.authorization import Request, Server, State


class Handler(BaseHTTPRequestHandler):
    state: State

    def do_GET(self) -> None:
        self._answer({})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        path = urlsplit(self.path).path
        self._answer(json.loads(body) if path == "/control" else dict(parse_qsl(body)))

    def _answer(self, data: dict[str, Any]) -> None:
        parts = urlsplit(self.path)
        self.state.calls.append(parts.path)
        if parts.path in self.state.replies:
            status, text = self.state.replies[parts.path]
            return self._send(status, text)
        answers = {
            "/control": self._control,
            "/.well-known/openid-configuration": self._metadata,
            "/keys": self._keys,
            "/authorize": self._authorize,
            "/token": self._token,
            "/userinfo": self._userinfo,
        }
        return answers[parts.path](data or dict(parse_qsl(parts.query)))

    def _control(self, data: dict[str, Any]) -> None:
        self.state.apply(data)
        self._send(200, {"calls": self.state.calls, "token_requests": self.state.token_requests})

    def _metadata(self, _data: dict[str, Any]) -> None:
        issuer = self.state.issuer
        self._send(200, {
            "issuer": issuer,
            "authorization_endpoint": f"{issuer}/authorize",
            "token_endpoint": f"{issuer}/token",
            "jwks_uri": f"{issuer}/keys",
            "userinfo_endpoint": f"{issuer}/userinfo",
            "authorization_response_iss_parameter_supported": True,
            **self.state.metadata,
        })  # fmt: skip

    def _keys(self, _data: dict[str, Any]) -> None:
        self._send(200, KeySet(self.state.keys).as_dict(private=False))

    def _authorize(self, data: dict[str, Any]) -> None:
        server = Server(self.state)
        request = Request("GET", self.state.issuer + "/authorize", {}, data)
        # Validate the request, as a provider does before it shows a page for consent.
        server.get_consent_grant(request)
        request = Request("GET", self.state.issuer + "/authorize", {}, data)
        _, _, headers = server.create_authorization_response(
            request, self.state.claims, grant=server.get_authorization_grant(request)
        )
        location = urlsplit(headers["Location"])
        answer = {
            **dict(parse_qsl(location.query)), "iss": self.state.issuer, **self.state.answer,
        }  # fmt: skip
        parameters = {name: value for name, value in answer.items() if value is not None}
        self.send_response(302)
        self.send_header("Location", location._replace(query=urlencode(parameters)).geturl())
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _token(self, data: dict[str, Any]) -> None:
        if self.state.is_disabled:
            return self._send(400, {"error": "invalid_grant"})
        request = Request("POST", self.state.issuer + "/token", dict(self.headers), data)
        self.state.token_requests.append(data)
        status, body, _ = Server(self.state).create_token_response(request)
        is_refresh = status == 200 and data["grant_type"] == "refresh_token"
        if is_refresh and self.state.refreshes_id_tokens:
            body["id_token"] = self.state.issue_id_token()
        return self._send(status, body)

    def _userinfo(self, _data: dict[str, Any]) -> None:
        token = self.headers.get("authorization", "").removeprefix("Bearer ")
        token_record = self.state.tokens.get(token)
        if token_record is None or self.state.is_disabled:
            return self._send(401, {"error": "invalid_token"})
        # The groups can have changed since the token was issued. Return the current groups.
        groups = self.state.claims.get("groups", [])
        claims = {**token_record.claims, "groups": groups, **self.state.userinfo}
        return self._send(200, {name: value for name, value in claims.items() if value is not None})

    def _send(self, status: int, content: object) -> None:
        text = content if isinstance(content, str) else json.dumps(content)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: Any) -> None: ...


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Handler.state = State(f"http://127.0.0.1:{server.server_port}")
    Handler.state.rotate()
    sys.stdout.write(Handler.state.issuer + "\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
