"""A fake client of the service, for tests of the agent's tasks. A test sets the answers."""

import asyncio
import contextlib
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from agent.adapters.service_client import CommandStream
from agent.rules.clock_skew import ClockSkew
from agent.rules.command_frames import Frame
from agent.rules.reports.sealing import report_of
from agent.wire.device_operations import (
    AcknowledgeReply,
    AcknowledgeRequest,
    ChallengeReply,
    ChallengeRequest,
    EnrollmentRecord,
    EnrollRequest,
    HeartbeatReply,
    HeartbeatRequest,
    SubmitResultReply,
)

Answer = Any
"""A value, an exception to raise, or a function of the request."""


@dataclass(slots=True)
class FakeServiceClient:
    """``calls`` has the operation and the request of each call, in order.

    An operation first takes its answers from ``script``, one for each call. After that it gives the
    answer in ``always``. If neither has an answer, it accepts the request like a real service.
    """

    now: Callable[[], datetime]
    skew: ClockSkew = field(default_factory=ClockSkew)
    calls: list[tuple[str, Any]] = field(default_factory=list)
    script: dict[str, deque[Answer]] = field(default_factory=lambda: defaultdict(deque))
    always: dict[str, Answer] = field(default_factory=dict)
    record: EnrollmentRecord | None = None
    open_streams: int = 0
    answer_timeouts_s: list[float | None] = field(default_factory=list)
    """The timeout of each call of `onCommands`."""

    def requests_of(self, operation: str) -> list[Any]:
        """Return the request of each call of ``operation``."""
        return [request for name, request in self.calls if name == operation]

    async def _answer(self, operation: str, request: Any, accept: Callable[[], Any]) -> Any:
        self.calls.append((operation, request))
        await asyncio.sleep(0)
        if self.script[operation]:
            answer = self.script[operation].popleft()
        elif operation in self.always:
            answer = self.always[operation]
        else:
            return accept()
        if callable(answer) and not isinstance(answer, type):
            answer = answer(request)
            if asyncio.iscoroutine(answer):
                answer = await answer
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def challenge(self, request: ChallengeRequest) -> ChallengeReply:
        def accept() -> ChallengeReply:
            self.record = EnrollmentRecord(
                instance_id=request.instance_id,
                location_id=request.location_id,
                legacy_install_id=request.legacy_install_id,
                app_version=request.app_version,
                capabilities=request.capabilities,
                binding_id=UUID(int=0xB1 + len(self.requests_of("enroll"))),
                organization_id="org-0001",
            )
            return ChallengeReply(challenge_id=UUID(int=0xC), nonce="nonce")

        answer: ChallengeReply = await self._answer("challenge", request, accept)
        return answer

    async def enroll(self, request: EnrollRequest) -> EnrollmentRecord:
        answer: EnrollmentRecord = await self._answer("enroll", request, lambda: self.record)
        return answer

    async def current(self) -> EnrollmentRecord | None:
        answer: EnrollmentRecord | None = await self._answer("current", None, lambda: self.record)
        return answer

    async def heartbeat(self, request: HeartbeatRequest) -> HeartbeatReply:
        def accept() -> HeartbeatReply:
            return HeartbeatReply(last_seen_at=self.now())

        answer: HeartbeatReply = await self._answer("heartbeat", request, accept)
        return answer

    async def acknowledge(self, request: AcknowledgeRequest) -> AcknowledgeReply:
        def accept() -> AcknowledgeReply:
            return AcknowledgeReply(accepted=True, status=request.status)

        answer: AcknowledgeReply = await self._answer("acknowledge", request, accept)
        return answer

    async def submit_result(self, body: bytes) -> SubmitResultReply:
        def accept() -> SubmitResultReply:
            report = report_of(body)
            return SubmitResultReply(
                report_id=report.report_id,
                request_id=report.request_id,
                outcome=report.outcome,
                tracker_status="disabled",
            )

        answer: SubmitResultReply = await self._answer("submitResult", body, accept)
        return answer

    @contextlib.asynccontextmanager
    async def commands(
        self, *, stream: bool, answer_within_s: float | None = None
    ) -> AsyncIterator[CommandStream]:
        self.answer_timeouts_s.append(answer_within_s)
        answer = await self._answer(
            "onCommands", stream, lambda: CommandStream(False, frames_then_end())
        )
        self.open_streams += 1
        try:
            yield answer
        finally:
            self.open_streams -= 1


async def frames_then_end(*frames: Frame | Exception) -> AsyncIterator[Frame]:
    """Yield the frames, and end. An exception among them is raised instead of yielded."""
    for frame in frames:
        if isinstance(frame, Exception):
            raise frame
        yield frame


async def frames_then_wait(*frames: Frame) -> AsyncIterator[Frame]:
    """Yield the frames, and then wait without an end, as an open stream does."""
    for frame in frames:
        yield frame
    await asyncio.Event().wait()
