"""Tests that random secrets, which are put into each input, appear in no output."""

import io
import json
import logging
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent.cli.main import main, run_command
from agent.config.file import load
from agent.config.model import Config, LocalConfig, Logging
from agent.errors import ConfigError
from agent.logs.setup import set_up_logging
from agent.redaction import known
from agent.redaction.redactor import Redactor
from agent.rules.reports.jobs import network_job
from agent.rules.reports.redacted_facts import redacted
from agent.tasks.health_board import HealthBoard
from collectors.contract import (
    ApplicationFacts,
    Endpoint,
    Failure,
    Field,
    Host,
    NetworkFacts,
    Printer,
    Service,
)
from tests.fakes.fake_clock import FakeClock
from tests.sizes import examples
from tests.unit.agent.redaction.test_redactor import HEAD, SECRETS, TAIL, WORDS, assert_no_secret

SERVICE = '[service]\nbase_url = "https://ops.example.com"\nlocation_id = "x"\n'
CONFIGURATIONS = (  # broken, invalid and valid configurations; {} is replaced with the secret
    'proxy = "http://user:{}@proxy:3128"\n',
    "proxy = 'user:{}@proxy:3128'\n",
    "proxy = http://user:{}@proxy:3128\n",
    'api_key = "{}"\n',
    "api_key = {}\n",
    "password = '{}\n",
    '{}\n',
    '"{}" = 1\n',
    'request_timeout_seconds = "http://user:{}@h"\n',
    '[network]\nsubnets = ["user:{}@10.0.0.1"]\n',
    '[service.token]\nvalue = "{}"\n',
    '[logging]\nlevel = {{ password = "{}" }}\n',
    'token = """\n{}\n',
    '[schedule]\nnetwork = "http://u:{}@h"\n',
)  # fmt: skip
ENVIRONMENT = (
    ("VENUE_AGENT_SERVICE__PROXY", "http://user:{}@proxy:3128"),
    ("VENUE_AGENT_SERVICE__PASSWORD", "{}"),
    ("VENUE_AGENT_SERVICE__BASE_URL", "http://user:{}@host"),
    ("VENUE_AGENT_HEARTBEAT__INTERVAL_SECONDS", "http://user:{}@host"),
)


@pytest.fixture(autouse=True)
def _without_api_key_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VENUE_AGENT_API_KEY", raising=False)


def _output_of_config_and_status(text: str) -> str:
    """Run `config` and `status` with a configuration. Return their output."""
    output = io.StringIO()
    with TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        config = Path(directory) / "config.toml"
        config.write_text(text, "utf-8")
        patch.setenv("STATE_DIRECTORY", directory)
        patch.setattr(sys, "stdout", output)
        patch.setattr(sys, "stderr", output)
        for words in (["check"], ["check", "--json"], ["show"], ["show", "--json"]):
            main(["config", *words, "--config", str(config)])
            main(["--debug", "config", *words, "--config", str(config)])
        main(["status", "--config", str(config)])
    known.forget()
    return output.getvalue()


@pytest.mark.medium
@settings(max_examples=examples(40))
@given(WORDS, st.sampled_from(CONFIGURATIONS))
@example("q7Zk:@Wv9x", '"{}" = 1\n')
def test_config_and_status_print_no_secrets(secret: str, text: str) -> None:
    output = _output_of_config_and_status(SERVICE + text.format(secret))
    if text in {"{}\n", '"{}" = 1\n'}:  # the name of a TOML key is not secret
        output = re.sub("unknown key '[^']*'", "", output)  # masked if it looks like user:word@host
    assert_no_secret(output)


@settings(max_examples=examples(40))
@given(SECRETS, st.sampled_from(ENVIRONMENT))
@example("q7Zk][Wv9x", ("VENUE_AGENT_SERVICE__BASE_URL", "http://user:{}@host"))
def test_secrets_in_environment_variables_are_redacted(
    secret: str, variable: tuple[str, str]
) -> None:
    name, value = variable
    known.forget()
    with TemporaryDirectory() as directory:
        config = Path(directory) / "config.toml"
        config.write_text(SERVICE)
        try:
            loaded = load(Config, config, {name: value.format(secret)})
        except ConfigError as error:
            assert_no_secret("\n".join(error.problems))
            assert_no_secret(str(error))
        else:
            assert_no_secret(json.dumps(known.redact_value("proxy", loaded.config.service.proxy)))


@pytest.mark.parametrize("form", ["text", "json"])
def test_secrets_in_log_messages_are_redacted(
    capsys: pytest.CaptureFixture[str], form: str
) -> None:
    set_up_logging(Logging(level="debug", format=form))  # type: ignore[arg-type]
    known.remember("9f8e/7d6c")
    logger = logging.getLogger("agent.test")
    logger.debug("asked by %s with %s", "http://user:p/ss@proxy:3128", {"password": "hunter2"})
    logger.info("request %s: 9f8e/7d6c", "vck_12345678")
    logger.warning("%d", "api_key=hunter2")  # an argument of the wrong type
    try:
        raise ValueError("Authorization: Bearer hunter2, or 9f8e%2F7d6c")
    except ValueError:
        logger.exception("it broke", stack_info=True)
    stderr = capsys.readouterr().err
    for secret in ("p/ss", "hunter2", "9f8e", "7d6c", "vck_1"):
        assert secret not in stderr
    assert "proxy:3128" in stderr
    assert "ValueError" in stderr
    assert "Traceback" in stderr


@given(SECRETS)
def test_problem_details_are_redacted(secret: str) -> None:
    known.forget()
    known.remember(secret)
    health = HealthBoard(FakeClock(), lambda: None)
    for detail in (f"ValueError: {secret}", f"ValueError: {secret!r}"):
        health.set("internal-error", detail)
        (problem,) = health.problems()
        assert_no_secret(problem.detail)
    known.forget()


def _facts(text: str) -> tuple[NetworkFacts, ApplicationFacts]:
    network = NetworkFacts(
        scope="device",
        os_platform=text,
        os_version=text,
        started_at="2026-11-20T12:00:00+00:00",
        hosts=(Host(text, (Service(80, "tcp", text, text),), hostname=text),),
        endpoints=(Endpoint(text, text, 80, text, ("scan",), "reachable", text),),
        printers=(Printer(text, text, "network", "unknown", text, text, text),),
        failures=(Failure("x", text),),
        limitations=(text,),
    )
    fields = (Field("a", text, "available", (text,)), Field(text, "b", "available", text))
    return network, ApplicationFacts("", fields=fields, failures=(Failure("x", text),))


@given(SECRETS, WORDS)
def test_secrets_in_reports_are_redacted(secret: str, word: str) -> None:
    redactor = Redactor([secret])
    for text in (secret, f"ipp://user:{word}@printer/q", f"till --password={secret}"):
        for facts in _facts(text):
            assert_no_secret(repr(redacted(facts, redactor.redact)))


def test_facts_without_a_secret_are_unchanged() -> None:
    for facts in _facts("Küche 192.168.1.5:9100"):
        assert redacted(facts, Redactor(["network", "reachable"]).redact) is facts


def test_words_of_the_contract_are_not_redacted() -> None:
    """A password that equals a term of the contract must not make a report invalid."""
    network, _ = _facts("x")
    redacted_facts = redacted(network, Redactor(["network", "device", "reachable", "scan"]).redact)
    assert redacted_facts == network


def test_collector_job_has_no_printer_passwords(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text(
        '[[printers]]\nid = "a"\nname = "A"\naddress = "user:p/ss@192.168.1.5:9100"\n'
        '[[printers]]\nid = "b"\nname = "B"\ntransport = "serial"\naddress = "/dev/x@1"\n'
    )
    job = network_job(load(LocalConfig, config, {}).config)
    assert [p.address for p in job.printers] == ["192.168.1.5:9100", "/dev/x@1"]
    assert "p/ss" not in str(job.printers[0].address)


def test_an_unexpected_error_is_printed_without_secrets(capsys: pytest.CaptureFixture[str]) -> None:
    def command() -> int:
        raise ValueError("password = hunter2")

    for debug in (False, True):
        assert run_command(command, debug=debug) == 1
        assert "hunter2" not in capsys.readouterr().err


def test_secrets_in_unknown_arguments_are_redacted(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["status", "--api-key=vck_12345678"])
    assert "vck_1" not in capsys.readouterr().err


def test_assert_no_secret_detects_secrets_that_are_not_redacted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`assert_no_secret` must raise if the redaction is disabled."""
    monkeypatch.setattr(Redactor, "redact", lambda _, text: text)
    monkeypatch.setattr(Redactor, "redact_value", lambda _, __, value: value)
    output = _output_of_config_and_status(SERVICE + f'proxy = "http://user:{HEAD}{TAIL}@proxy"\n')
    with pytest.raises(AssertionError):
        assert_no_secret(output)
