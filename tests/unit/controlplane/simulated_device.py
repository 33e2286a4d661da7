"""A simulated device, which has a key pair and calls the public API of the service."""

import uuid
from typing import Any

import httpx2
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from agent.wire import routes


class SimulatedDevice:
    """A device. Most methods make one call of the public API and return the response.

    ``enrolled`` enrolls the device, stores its ``binding_id``, and returns the device itself.
    ``enroll`` does not store the id.
    """

    def __init__(
        self, http: httpx2.AsyncClient, api_key: str, location_id: str = "loc-0001"
    ) -> None:
        self.http = http
        self.api_key = api_key
        self.location_id = location_id
        self.instance_id = str(uuid.uuid4())
        self.binding_id = ""
        self.private_key = Ed25519PrivateKey.generate()

    @property
    def public_key(self) -> str:
        public = self.private_key.public_key()
        return public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo).hex()

    def sign(self, nonce: str) -> str:
        return self.private_key.sign(nonce.encode()).hex()

    async def call(self, path: str, **body: Any) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {self.api_key}"}
        return await self.http.post(path, json=body, headers=headers)

    async def challenge(self, **changes: Any) -> httpx2.Response:
        body = {
            "instanceId": self.instance_id,
            "publicKey": self.public_key,
            "platform": "linux",
            "locationId": self.location_id,
            "legacyInstallId": "till-01",
            "appVersion": "0.1.0",
            "capabilities": ["network", "application"],
        }
        return await self.call(routes.CHALLENGE, **(body | changes))

    async def answer(self, challenge: httpx2.Response) -> httpx2.Response:
        request = challenge.json()
        return await self.call(
            routes.ENROLL, challengeId=request["challengeId"], signature=self.sign(request["nonce"])
        )

    async def enroll(self, **changes: Any) -> httpx2.Response:
        return await self.answer(await self.challenge(**changes))

    async def enrolled(self) -> "SimulatedDevice":
        response = await self.enroll()
        assert response.status_code == 200, response.text
        self.binding_id = response.json()["bindingId"]
        return self

    async def heartbeat(self, foreground: bool = False) -> httpx2.Response:
        return await self.call(routes.HEARTBEAT, bindingId=self.binding_id, foreground=foreground)

    async def commands(self) -> list[dict[str, Any]]:
        response = await self.call(routes.ON_COMMANDS)
        assert response.status_code == 200, response.text
        results: list[dict[str, Any]] = response.json()["commands"]
        return results

    async def create_request(self, kind: str = "network") -> str:
        """Create a request for this device. Return the id of the request."""
        response = await self.call(routes.CREATE_REQUEST, instanceId=self.instance_id, kind=kind)
        assert response.status_code == 200, response.text
        return str(response.json()["requestId"])

    async def acknowledge(self, request_id: str, status: str) -> httpx2.Response:
        return await self.call(
            routes.ACKNOWLEDGE,
            requestId=request_id,
            bindingId=self.binding_id,
            status=status,
        )

    async def submit(self, report: Any = None, **changes: Any) -> httpx2.Response:
        body = {
            "bindingId": self.binding_id,
            "reportId": str(uuid.uuid4()),
            "kind": "network",
            "outcome": "failed" if report is None else "completed",
            "report": report,
        }
        return await self.call(routes.SUBMIT_RESULT, **(body | changes))

    async def detail(self) -> dict[str, Any]:
        response = await self.call(routes.DEVICE_DETAIL, instanceId=self.instance_id)
        assert response.status_code == 200, response.text
        reply: dict[str, Any] = response.json()
        return reply

    async def status_of(self, request_id: str) -> str:
        requests = (await self.detail())["requests"]
        return str(next(entry["status"] for entry in requests if entry["id"] == request_id))
