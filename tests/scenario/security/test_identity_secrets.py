"""Searches for the agent's API key and private key in everything that the agent writes.

Only identity.pem may contain the private key.
"""

import base64
import signal
import zipfile
from pathlib import Path

from tests.fakes.strict_service import API_KEY, StrictService
from tests.scenario.agent_process import environment, running_agent, write_config
from tests.scenario.forked_process import run_forked

COMMANDS = (
    ("status",),
    ("status", "--json"),
    ("history", "--json"),
    ("config", "show"),
)


async def run_verb(config: Path, *words: str) -> tuple[int, str, str]:
    return await run_forked("agent", *words, "--config", str(config), environment=environment())


async def test_no_output_contains_a_secret(tmp_path: Path) -> None:
    outputs: dict[str, bytes] = {}
    async with StrictService() as service:
        config = write_config(tmp_path, service.base_url, logging='level = "debug"')
        key = tmp_path / "api-key"
        async with running_agent(config) as agent:
            for kind in ("network", "application"):
                request_id = await service.request_report(kind)
                await service.until(lambda r=request_id: service.report_for(r) is not None)
            # Refusals and reloads are the most likely causes of keys in messages.
            key.write_text(API_KEY + "-old\n")
            agent.process.send_signal(signal.SIGHUP)
            await agent.until_logged("does not accept the API key")
            key.write_text(API_KEY + "\n")
            for words in COMMANDS:
                _, output, errors = await run_verb(config, *words)
                outputs[" ".join(words)] = (output + errors).encode()
            bundle = tmp_path / "bundle.zip"
            _, output, errors = await run_verb(config, "doctor", "--bundle", str(bundle))
            outputs["doctor"] = (output + errors).encode()
            assert await agent.stop() == 0
        outputs["log"] = agent.log.encode()
        outputs["reports"] = b"".join(service.bodies)
    with zipfile.ZipFile(bundle) as archive:
        outputs |= {f"bundle: {name}": archive.read(name) for name in archive.namelist()}
    for path in (tmp_path / "state").rglob("*"):
        if path.is_file() and path.name != "identity.pem":
            outputs[f"state: {path.name}"] = path.read_bytes()
    assert len(outputs["log"]) > 1000
    assert len(outputs) > len(COMMANDS) + 5
    pem = (tmp_path / "state" / "identity.pem").read_text()
    encoded = "".join(pem.splitlines()[1:-1])
    secret = base64.b64decode(encoded)[-32:]  # the private key is at the end (RFC 8410, section 7)
    secrets = (API_KEY.encode(), encoded.encode(), secret, secret.hex().encode())
    for place, content in outputs.items():
        for hidden in secrets:
            assert hidden not in content, f"a secret is in {place}"


async def test_tls_verification_cannot_be_switched_off(tmp_path: Path) -> None:
    for line in ("verify = false", "insecure = true"):
        config = write_config(tmp_path, "https://ops.example.com", service=line)
        code, _, errors = await run_verb(config, "config", "check")
        assert code == 2
        assert "unknown key" in errors
