"""Tests of the sources of the API key, their order, and that the key is read for each use."""

from pathlib import Path

import pytest

from agent.config.credential import MAX_KEY_LENGTH, ApiKeySource, key_source
from agent.errors import CredentialRefused


def find_key_source(api_key_file: str, environment: dict[str, str]) -> ApiKeySource:
    """Return the source of the API key for a configuration without a key file next to it."""
    return key_source(api_key_file, Path("/nonexistent/config.toml"), environment)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "api-key"


def test_key_sources_have_a_fixed_order(tmp_path: Path) -> None:
    (tmp_path / "api-key").write_text("from-systemd")
    environment = {"CREDENTIALS_DIRECTORY": str(tmp_path), "VENUE_AGENT_API_KEY": "from-variable"}

    assert find_key_source("/etc/key", environment) == ApiKeySource(Path("/etc/key"), None)
    assert find_key_source("", environment).read() == "from-systemd"
    (tmp_path / "api-key").unlink()
    assert find_key_source("", environment).read() == "from-variable"
    assert find_key_source("", {}) == ApiKeySource(None, None)


def test_the_api_key_file_is_read_each_time(file: Path) -> None:
    source = find_key_source(str(file), {})
    for key in ("first", "second"):
        file.write_text(key)
        assert source.read() == key


@pytest.mark.parametrize(
    "content", [b"key-1\n", b"  key-1\r\n\r\n", b"\xef\xbb\xbfkey-1", b"key-1"]
)
def test_white_space_and_byte_order_marks_are_removed_from_the_api_key(
    file: Path, content: bytes
) -> None:
    file.write_bytes(content)

    assert find_key_source(str(file), {}).read() == "key-1"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"secret secret", "does not contain an API key"),
        (b"secret\nsecret", "does not contain an API key"),
        (b"secret\tsecret", "does not contain an API key"),
        (b"secret\x7f", "does not contain an API key"),
        (b"secret\x00", "does not contain an API key"),
        ("secret-schlüssel".encode(), "does not contain an API key"),
        (b"\xff\xfesecret", "is not a text file"),
        (b"secret" * MAX_KEY_LENGTH, "does not contain an API key"),
    ],
)
def test_the_error_for_an_invalid_key_names_the_file_but_not_the_key(
    file: Path, content: bytes, complaint: str
) -> None:
    file.write_bytes(content)

    with pytest.raises(CredentialRefused, match=complaint) as error:
        find_key_source(str(file), {}).read()

    assert str(file) in str(error.value)
    assert "secret" not in str(error.value)


def test_the_longest_key_is_read(file: Path) -> None:
    file.write_bytes(b"x" * MAX_KEY_LENGTH)

    assert len(find_key_source(str(file), {}).read()) == MAX_KEY_LENGTH


def test_missing_key_file_is_refused(file: Path) -> None:
    with pytest.raises(CredentialRefused, match="No such file"):
        find_key_source(str(file), {}).read()


def test_missing_key_source_is_refused() -> None:
    with pytest.raises(CredentialRefused, match=r"there is no API key: set service\.api_key_file"):
        find_key_source("", {}).read()
    with pytest.raises(CredentialRefused, match="VENUE_AGENT_API_KEY is empty"):
        find_key_source("", {"VENUE_AGENT_API_KEY": ""}).read()


def test_the_source_of_the_api_key_is_described(file: Path) -> None:
    assert find_key_source(str(file), {}).describe() == f"the file {file}"
    assert (
        find_key_source("", {"VENUE_AGENT_API_KEY": "k"}).describe()
        == "the variable VENUE_AGENT_API_KEY"
    )
    assert find_key_source("", {}).describe() == "nowhere"
