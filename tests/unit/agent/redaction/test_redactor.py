"""Tests of redaction: which text is removed, which text stays, and that the time is linear."""

import base64
import json
import re
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.redaction.configuration import redact_configuration, secrets_in_configuration
from agent.redaction.named_values import names_a_secret
from agent.redaction.redactor import Redactor
from agent.redaction.shapes import MASK
from agent.redaction.userinfo import replace_userinfo, userinfo_of
from tests import sizes
from tests.time_limit import generous_time_limit


def redact(text: str, known: Iterable[str] = ()) -> str:
    return Redactor(known).redact(text)


KEY = "vck_" + "Ab3-_" * 8 + "xyz"
RETAIL_KEY = "acme_live_" + "Ab3Zz9Q0" * 8
TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl"
PEM = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIA\n-----END PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"the key is {KEY}.", "the key is ***."),
        (f"{RETAIL_KEY} and {RETAIL_KEY.replace('live', 'test')}", "*** and ***"),
        ("stripe sk_live_4eC39HqLyjWDarjtT1zdp7dc", "stripe ***"),
        (f"token {TOKEN}, said the server", "token ***, said the server"),
        (f"a\n{PEM}\nb", "a\n***\nb"),
        (PEM[:50], "***"),  # cut off: its end is unknown
        (json.dumps(PEM), '"***"'),
        ("Bearer aGVsbG8.x_y-z/+=", "Bearer ***"),
        ("sent Basic dXNlcjpwYXNz to it", "sent Basic *** to it"),
        ("Authorization: Digest username=a, response=b", "Authorization: ***"),
        ("Authorization: Bearer <aGVsbG8>x", "Authorization: ***"),
        ("Set-Cookie: sid=1; Path=/", "Set-Cookie: ***"),
        ("X-Api-Key: 12345678", "X-Api-Key: ***"),
    ],
)
def test_secrets_are_recognised_by_their_form(text: str, expected: str) -> None:
    assert redact(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://user:pass@proxy:3128", "http://***@proxy:3128"),
        ("http://user:p/ss@proxy:3128", "http://***@proxy:3128"),
        ("http://us%65r:p@ss@proxy", "http://***@proxy"),
        ("http://user:p#a?b%@proxy/x", "http://***@proxy/x"),
        ("http://user:a pass word@proxy:1 refuses", "http://***@proxy:1 refuses"),
        ("http://user:pässwörd@proxy", "http://***@proxy"),
        ("http://user:12/34@proxy", "http://***@proxy"),
        ("http://token@proxy", "http://***@proxy"),
        ("http://user:p\"s's@proxy", "http://***@proxy"),
        ("user:pass@proxy:3128", "***@proxy:3128"),
        ("user:p/s@s@proxy:3128", "***@proxy:3128"),
        ("HTTPS_PROXY=user:p=ss@proxy:3128", "HTTPS_PROXY=***@proxy:3128"),
        ("smb://user:pass@server/printer", "smb://***@server/printer"),
        (r"http:\/\/user:pass@proxy", r"http:\/\/***@proxy"),
        ("u=http%3A%2F%2Fuser%3Apass%40proxy&x", "u=http%3A%2F%2F***%40proxy&x"),
        ('{"a":"http://u:p@x","b":"u@h"}', '{"a":"http://***@x","b":"u@h"}'),
        ("a:b@c,http://u:p@d", "***@c,http://***@d"),
    ],
)
def test_user_and_password_of_a_url_are_redacted(text: str, expected: str) -> None:
    assert redact(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('api_key = "x"', 'api_key = "***"'),
        ("  'apiKey' = 'x' # why", "  'apiKey' = '***' # why"),
        ('service.password="a\\"b"\nport = 1', 'service.password="***"\nport = 1'),
        ('password = "ab"cd"', "password = ***"),
        ('password = "ab", cd"', "password = ***"),
        ('password = "ab\ncd"\nport = 1', "password = ***\nport = 1"),
        ('password = """\nab\n\ncd"""\nport = 1', "password = ***\nport = 1"),
        ("secret = '''ab\ncd", "secret = ***"),
        ('token =\n  "ab"\nport = 1', "token =\n  ***\nport = 1"),
        ('tokens = ["a]b",\n "c"]\nport = 1', "tokens = ***\nport = 1"),
        ('x = { user = "a", password = "b", port = 1 }', None),
        ("PASSWORD=a b c", "PASSWORD=***"),
        ("export DB_PASSWD=a", "export DB_PASSWD=***"),
        ("#snmp_community: public", "#snmp_community: ***"),
        ("client_secret_2 = 7", "client_secret_2 = ***"),
        ('{"auth": {"pin": 1234}, "ok": true}', '{"auth": ***, "ok": true}'),
        ("{'passwd': 'x', 'user': 'y'}", "{'passwd': '***', 'user': 'y'}"),
        (r'"said {\"password\": \"x\"}"', None),
        ("GET /x?token=abc HTTP/1.1", "GET /x?token=***"),
        ("mount --password hunter2 -o ro", "mount --password *** -o ro"),
        ("['--token', 'hunter2', 'x']", "['--token', '***', 'x']"),
        ('os.environ["API_KEY"] = "x"', 'os.environ["API_KEY"] = "***"'),
    ],
)
def test_values_of_keys_that_name_a_secret_are_redacted(text: str, expected: str | None) -> None:
    """If ``expected`` is None, the test only checks that the secret is masked."""
    if expected is None:
        assert MASK in redact(text)
        assert '"b"' not in redact(text)
        assert '"x' not in redact(text)
    else:
        assert redact(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        'api_key_file = "/etc/venue-agent/api-key"',
        "the API key cannot be read from /etc/venue-agent/api-key: Permission denied",
        "api-key: the API key cannot be read",
        "credential: the service accepts the API key",
        (
            "the credential is missing or invalid: send Authorization: Bearer <API key>, or the"
            " session cookie"
        ),
        'quotes are missing: write snmp_community = "…"',
        "user@host wrote to anna@example.com, mailto:anna@example.com",
        "getty@tty1.service: Deactivated",
        "git@github.com:owner/name",
        "aa:bb:cc:dd:ee:ff@eth0 and 02-00-00-00-00-99",
        "fe80::1%eth0, [fe80::1]:631, http://[::1]:9222/json",
        "http://proxy:3128 refuses user@example.com",
        "https://cdn.example.com/npm/pkg@1.2.3/x.js",
        "ipp://192.168.1.5:631/printers/a@b",
        "PATH=/usr/bin:/opt/homebrew/opt/python@3.12/bin",
        r"C:\opt\python@3.12\python.exe",
        "2026-11-21T15:49:08 12:30:45 root@host",
        "expected a token, the credential-refused condition, credential-shared",
        "bypass = true",
        "monkey = 1, keyboard = 2, compass: north, tokenizer = x, secretary: y",
        '{"cookiesEnabled": true, "token": null, "password": ""}',
        "token_url = /x, password_file = /y, auth_method = z",
        "tests/unit_test_configuration_of_the_agent.py",
        "basic settings, Basic authentication, bearer token",
        "vck_… and vck_",
        "192.168.1.50:9100, kitchen:9100, _ipp._tcp.local",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    ],
)
def test_text_without_secrets_is_not_redacted(text: str) -> None:
    assert redact(text) == text


# ------------------------------------------------------------------ generated texts

# Each secret begins and ends with a marker, so that an output with only a part of a secret is also
# detected.
HEAD, TAIL = "q7Zk", "Wv9x"
_SIGNS = st.one_of(st.characters(min_codepoint=32, max_codepoint=126), st.sampled_from("äß€😀 "))
SECRETS = st.text(_SIGNS, max_size=24).map(lambda middle: f"{HEAD}{middle}{TAIL}")
# WORDS are ASCII secrets without spaces, quotes and backslashes.
WORDS = st.text(
    st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="\"'\\"), max_size=24
).map(lambda middle: f"{HEAD}{middle}{TAIL}")

HOST_AND_PATH = re.compile(
    r"(?:[A-Za-z0-9.\-]+\.[A-Za-z][A-Za-z0-9\-]*"
    r"|(?:localhost|\d+(?:\.\d+){3}|\[[0-9A-Fa-f:.%]+\])(?::\d+)?)[/?#]"
)
URL_WITH_PATH = re.compile(f"://{HOST_AND_PATH.pattern}")
SCHEME = re.compile(r"^([A-Za-z0-9+.\-]+):(?=\\?/\\?/)")
CLOSING_QUOTE = re.compile(r'"(?=\s*(?:[#;,}\])"\x27]|[\w.\-]+\s*=))')


LINES = (
    'password = "{}"',
    "password = '{}'",
    "password = {}",
    'service.api_key = "{}',
    "API_KEY={}",
    'proxy = "http://user:{}@proxy:3128"',
    'proxy = "user:{}@proxy:3128"',
    "proxy = http://user:{}@proxy:3128",
    "# proxy = 'http://{}:x@proxy:3128'",
    "https_proxy={}@proxy",
    "Authorization: {}",
    "Proxy-Authorization: Bearer {}",
    "Cookie: {}",
    'password = """\n{}\n"""',
)


def assert_no_secret(text: str) -> None:
    assert HEAD not in text
    assert TAIL not in text


@given(SECRETS, st.sampled_from(LINES))
@example(f'{HEAD}"""{TAIL}', LINES[-1])
def test_secrets_in_configuration_lines_are_redacted(secret: str, line: str) -> None:
    if line.endswith('"{}'):  # such a quote ends the string, and the text after it is not secret
        secret = CLOSING_QUOTE.sub("", secret)
    if line.startswith("https_proxy={}"):  # a scheme is not secret
        secret = SCHEME.sub(r"\1", secret)
    text = "[service]\n" + line.format(secret) + '\nlocation_id = "x"\n'
    output = redact_configuration(text, Redactor())
    assert_no_secret(output)
    assert output.startswith("[service]\n")


@given(SECRETS)
def test_secrets_in_documents_are_redacted(secret: str) -> None:
    document = {"password": secret, "user": "x", "n": [{"apiKey": [secret]}], "pin": {"v": secret}}
    assert_no_secret(redact(json.dumps(document)))
    assert_no_secret(redact(json.dumps(document, indent=1, ensure_ascii=False)))
    assert_no_secret(json.dumps(Redactor().redact_value("", document)))
    assert_no_secret(redact(f"broke at { ({'password': secret, 'user': 1})!r}"))


@given(WORDS)
@example(f"{HEAD}0PW={TAIL}")
@example(f"{HEAD}://{TAIL}")
def test_secrets_in_urls_are_redacted(word: str) -> None:
    urls = [f"http://user:{word}@h:1/"]
    if not URL_WITH_PATH.search(word):
        # The path of a URL can contain @.
        urls.append(f"x user:{word}@h:1 y")
    if not HOST_AND_PATH.match(word):
        # A word in the form of a host and a path cannot be recognized as a user name.
        urls.append(f"('smb://{word}@h/p')")
    for url in urls:
        assert_no_secret(redact(url))
        assert_no_secret(redact(json.dumps({"u": url})))
    assert_no_secret(replace_userinfo(f"http://user:{word}@proxy:1"))
    assert word in userinfo_of(f"http://user:{word}@proxy:1")


@given(SECRETS, st.text(max_size=40))
def test_a_known_secret_is_redacted_in_every_encoding(secret: str, around: str) -> None:
    for encoded in (
        secret,
        json.dumps(secret),
        json.dumps(json.dumps(secret)),
        json.dumps(secret, ensure_ascii=False),
        repr(secret),
        quote(secret),
        quote(secret, safe=""),
        quote_plus(secret),
        secret.encode().hex(),
    ):
        assert_no_secret(redact(f"{around}{encoded}{around}", [secret]))
    # The base64 form of a secret depends on the number of bytes before it.
    for before in ("", "u", "us", "user:"):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            encoded = encode(f"{before}{secret}".encode()).decode()
            remaining = redact(encoded, [secret]).replace(MASK, "").rstrip("=")
            assert len(remaining) <= len(base64.b64encode(before.encode())) + 3


@given(st.text(), st.lists(st.text(max_size=20), max_size=3))
def test_any_text_is_redacted_without_an_error(text: str, known: list[str]) -> None:
    redact_configuration(text, Redactor(known))
    list(secrets_in_configuration(text))
    redact(text, known)
    names_a_secret(text)


# ------------------------------------------------------------------ duration

HOSTILE = (
    "://", "a:b@", "http://u:a ", "password=", "password=[", 'password="', "password=\n", "token:a",
    "token: a ", '"password": "', "password='''", "eyJ", "eyJa.", "_live_", "a_live_", "vck_",
    "-----BEGIN PRIVATE KEY-----", "-----BEGIN ", "-----END ", "basic aaaaaaaaa", "bearer ", "--",
    "--password ", "%3a%2f%2f%40", "\\", "\\\"", '"x', "'", "a.", "#key", "[", "{", "::", " ", "a",
    "proxy", "=http://", "=a://@", "proxy=a@", "api_key", "=", "@",
)  # fmt: skip
SIZE = sizes.amount(medium=100_000, large=1_000_000)


@pytest.mark.parametrize("unit", HOSTILE)
def test_long_hostile_text_is_redacted_in_linear_time(unit: str) -> None:
    text = (unit * (SIZE // len(unit) + 1))[: SIZE - 2] + "@x"
    redactor = Redactor(["a known secret", "another/one"])
    with generous_time_limit():
        redactor.redact(text)
        redact_configuration(text, redactor)
        list(secrets_in_configuration(text))
        list(secrets_in_configuration(f"a@b {text[:-2]}"))
