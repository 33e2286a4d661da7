"""Tests of the messages for frequent mistakes in TOML: the position, and what to write instead."""

from pathlib import Path

import pytest

from agent.config.file import load
from agent.config.model import Config
from agent.errors import ConfigError

SERVICE = '[service]\nbase_url = "https://ops.venue.test"\nlocation_id = "loc-0001"\n'


def problem_in(directory: Path, text: str) -> str:
    """Return the last problem of a configuration, without the name of its file."""
    file = directory / "config.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as error:
        load(Config, file, {})
    return error.value.problems[-1].removeprefix(f"{file}:")


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ("base_url = https://ops.venue.test", '4:12: quotes are missing: write base_url = "…"'),
        ("api_key_file = /etc/key", '4:16: quotes are missing: write api_key_file = "…"'),
        ("[device]\nlegacy_install_id = 12ab",
         '5:23: quotes are missing: write legacy_install_id = "…"'),
        ("[network]\nenabled = yes", "5:11: write enabled = true"),
        ("[network]\nenabled = True", "5:11: write enabled = true"),
        ("[network]\nenabled = off  # why", "5:11: write enabled = false"),
        ("[network]\nenabled = null", "5:11: null is no value: delete the line to use the default"),
        ("[network]\nexclude =", ("5:10: 'exclude' has no value: write exclude = "
         '["…", "…"], or delete the line')),
        ("proxy = “http://proxy”",
         '4:9: the quotes are curly: write straight ones, proxy = "…"'),
        ("[network]\nexclude = [“192.168.1.20”]",
         '5:12: the quotes are curly: write straight ones, exclude = ["…", "…"]'),
        ("[network]\n[service]",
         ("5:9: [service] appears twice, first in line 1: move these keys there, and delete this"
         " line")),
        ("[printers]\n[printers]",
         "5:10: write [[printers]], with two brackets, above each of the printers"),
        ("[network]\nenabled = true\n\nenabled = false",
         "7:16: 'enabled' is set twice, first in line 5: delete one of the two lines"),
        ('api_key_file = "C:\\Users\\key"',
         ("4:21: a backslash in double quotes has a special meaning: use single quotes,"
         " api_key_file = 'C:\\folder\\file'")),
        ('ca_file = "D:\\certificates\\"',
         ("4:16: a backslash in double quotes has a special meaning: use single quotes,"
         " ca_file = 'C:\\folder\\file'")),
        ("[network]\nenabled true", "5:9: the sign = is missing: enabled = true"),
        ("[heartbeat]\ninterval_seconds: 30",
         "5:17: write = instead of the colon: interval_seconds = 30"),
        ('proxy = "http://proxy', '4:22: the closing quote is missing: write proxy = "…"'),
        ("[network", "4:9: the closing bracket of the section is missing: write [section]"),
        ('proxy = "" ca_file = ""', "4:12: write each key in a line of its own"),
        ("[heartbeat]\ninterval_seconds = 30s",
         "5:22: write the number without a unit: interval_seconds = 30"),
        ("[heartbeat]\ninterval_seconds = 30,",
         "5:22: delete the comma or semicolon at the end of the line"),
        ("[heartbeat]\ninterval_seconds = thirty",
         "5:20: the value must be a number: write interval_seconds = 30"),
        ("[heartbeat]\ninterval_seconds = 08",
         "5:21: a number must not begin with 0: interval_seconds = 30"),
        ("[network]\nenabled = maybe",
         "5:11: the value must be true or false: write enabled = true"),
        ("[network]\nexclude = [192.168.1.20]",
         '5:19: quotes are missing: write exclude = ["…", "…"]'),
        ("[network]\nexclude = 192.168.1.20",
         '5:18: quotes are missing: write exclude = ["…", "…"]'),
        ("[network]\nports = [0631]",
         ("5:11: a list is not complete: check its commas, quotes and closing bracket:"
         " ports = [80, 443]")),
        ("[network]\nports = [80, 443\nmax_hosts = 5",
         ("6:1: the list in line 5 is not complete: check its commas, quotes and closing bracket:"
         " ports = [80, 443]")),
        ('[network]\nexclude = ["192.168.1.20",\n  "192.168.1.21"',
         ("6:17: the list in line 5 is not complete: check its commas, quotes and closing bracket:"
         ' exclude = ["…", "…"]')),
        ("[network]\nports = [80,",
         ("5:13: a list is not complete: check its commas, quotes and closing bracket:"
         " ports = [80, 443]")),
        ("// comment", "4:1: a comment begins with #"),
        ("a remark", ("4:3: this line is neither a [section] nor a key = value; if it is a comment,"
         " put # before it")),
    ],
)  # fmt: skip
def test_frequent_syntax_errors_have_advice(tmp_path: Path, lines: str, problem: str) -> None:
    assert problem_in(tmp_path, f"{SERVICE}{lines}\n") == problem


def test_a_section_after_dotted_keys_has_advice(tmp_path: Path) -> None:
    text = 'service.base_url = "https://ops.venue.test"\n[service]\n'
    assert problem_in(tmp_path, text) == (
        "2:9: keys of [service] are set above, as service.key = …: move them below this line"
    )


@pytest.mark.parametrize(
    "line",
    ["hunter2 = tr0ub4dor", "hunter2 = “tr0ub4dor”", "hunter2 tr0ub4dor", 'hunter2 = "tr0ub4dor\\"',
     "proxy = tr0ub4dor", "hunter2 = 1\nhunter2 = 2"],
)  # fmt: skip
def test_advice_repeats_no_unknown_text(tmp_path: Path, line: str) -> None:
    problem = problem_in(tmp_path, f"{SERVICE}{line}\n")
    assert "hunter2" not in problem
    assert "tr0ub4dor" not in problem


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ('[network]\nenabled = "true"',
         "5:1: network.enabled must be true or false (it is 'true'; delete the quotes)"),
        ('[heartbeat]\ninterval_seconds = "30"',
         "5:1: heartbeat.interval_seconds must be a number (it is '30'; delete the quotes)"),
        ('[network]\nexclude = "192.168.1.20"',
         "5:1: network.exclude must be a list (it is '192.168.1.20'; write it in square brackets)"),
        ('[printers]\nid = "bar"',
         ("4:2: printers must be a list (it is {'id': 'bar'}; write [[printers]], with two"
         " brackets)")),
        ('[logging]\nlevel = "verbose"',
         ("5:1: logging.level must be 'debug', 'info', 'warning' or 'error' (it is 'verbose'; did"
         " you mean 'debug'?)")),
        ('[logging]\nlevel = "warn"',
         ("5:1: logging.level must be 'debug', 'info', 'warning' or 'error' (it is 'warn'; did you"
         " mean 'warning'?)")),
        ('[network]\nproxy = ""', "5:1: unknown key 'proxy' in [network]: it belongs in [service]"),
    ],
)  # fmt: skip
def test_wrong_values_have_a_suggestion(tmp_path: Path, lines: str, problem: str) -> None:
    assert problem_in(tmp_path, f"{SERVICE}{lines}\n") == problem


def test_a_key_above_the_first_section_is_reported_with_its_section(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(SERVICE.removeprefix("[service]\n"), encoding="utf-8")
    with pytest.raises(ConfigError) as error:
        load(Config, file, {})
    assert error.value.problems == (
        f"{file}:1:1: unknown key 'base_url': it belongs below a line [service]",
        f"{file}:2:1: unknown key 'location_id': it belongs below a line [service]",
    )
