"""Tests of the private key of the device: only its owner can read it, it is created once, and its
signatures can be verified.
"""

import base64
from pathlib import Path
from uuid import UUID

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from agent.adapters.identity import IdentityFile, NonceError, SigningKey
from agent.adapters.storage.state import StateDirectory
from agent.errors import ServiceError, StateError
from agent.wire.device_operations import EnrollRequest

NONCE = b"\x00\x01nonce"


@pytest.fixture
def identity(state: StateDirectory) -> IdentityFile:
    return IdentityFile(state)


def public_key(key: SigningKey) -> Ed25519PublicKey:
    loaded = serialization.load_der_public_key(bytes.fromhex(key.public_key))
    assert isinstance(loaded, Ed25519PublicKey)
    return loaded


def test_the_key_is_created_once_and_only_its_owner_can_read_it(
    identity: IdentityFile, state: StateDirectory
) -> None:
    assert not identity.exists()
    first = identity.load_or_create()

    assert identity.exists()
    assert (state.path / "identity.pem").stat().st_mode & 0o777 == 0o600
    again = IdentityFile(state).load_or_create()
    assert again.public_key == first.public_key
    assert again.instance_id == first.instance_id
    assert [path.name for path in state.path.iterdir()] == ["identity.pem"]


def test_the_public_key_is_88_hex_digits_of_its_der_form(identity: IdentityFile) -> None:
    key = identity.load_or_create()

    assert len(key.public_key) == 88
    assert key.public_key == key.public_key.lower()
    assert key.public_key.startswith("302a300506032b6570032100")
    assert len(public_key(key).public_bytes_raw()) == 32


def test_a_new_device_key_has_a_new_instance_id(
    identity: IdentityFile, state: StateDirectory
) -> None:
    first = identity.load_or_create()
    quarantined = identity.quarantine_file()

    second = identity.load_or_create()

    assert quarantined.exists()
    assert second.instance_id != first.instance_id


def test_the_instance_id_of_a_key_never_changes() -> None:
    key = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes(range(32))))

    assert str(key.instance_id) == "b98b0c4c-3815-5648-a6b1-dba6436acad6"


@pytest.mark.parametrize("signature_encoding", ["hex", "base64"])
@pytest.mark.parametrize(
    ("nonce_encoding", "nonce", "signed"),
    [
        ("utf8", "Nonce-ä🖨", "Nonce-ä🖨".encode()),
        ("hex", NONCE.hex(), NONCE),
        ("hex", NONCE.hex().upper(), NONCE),
        ("base64", base64.b64encode(NONCE).decode(), NONCE),
    ],
)
def test_a_signature_can_be_verified(
    identity: IdentityFile, signature_encoding: str, nonce_encoding: str, nonce: str, signed: bytes
) -> None:
    key = identity.load_or_create()

    signature = key.sign(nonce, nonce_encoding, signature_encoding)  # type: ignore[arg-type]

    EnrollRequest(challenge_id=UUID(int=1), signature=signature)  # raises if it is not valid
    raw = bytes.fromhex(signature) if signature_encoding == "hex" else base64.b64decode(signature)
    assert len(signature) == (128 if signature_encoding == "hex" else 88)
    public_key(key).verify(raw, signed)
    with pytest.raises(InvalidSignature):
        public_key(key).verify(raw, signed + b"x")


@pytest.mark.parametrize(
    ("encoding", "nonce"), [("hex", "xyz"), ("base64", "a b"), ("base64", "a")]
)
def test_nonce_in_the_wrong_encoding_raises_an_error(
    identity: IdentityFile, encoding: str, nonce: str
) -> None:
    with pytest.raises(NonceError, match=rf"the nonce is not {encoding}: see enrollment") as error:
        identity.load_or_create().sign(nonce, encoding, "hex")  # type: ignore[arg-type]

    assert isinstance(error.value, ServiceError)


def pem(key: Ed25519PrivateKey | ec.EllipticCurvePrivateKey, password: bytes = b"") -> bytes:
    encryption = BestAvailableEncryption(password) if password else NoEncryption()
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)


BROKEN_KEYS = {
    "empty": b"",
    "text": b"not a key",
    "cut": pem(Ed25519PrivateKey.generate())[:60],
    "other-algorithm": pem(ec.generate_private_key(ec.SECP256R1())),
    "encrypted": pem(Ed25519PrivateKey.generate(), b"password"),
}


@pytest.mark.parametrize("content", BROKEN_KEYS.values(), ids=BROKEN_KEYS)
def test_a_broken_key_is_set_aside_and_a_new_key_is_created(
    identity: IdentityFile, state: StateDirectory, content: bytes
) -> None:
    (state.path / "identity.pem").write_bytes(content)

    key = identity.load_or_create()

    assert identity.load_or_create().public_key == key.public_key
    quarantined = list(state.quarantine_path.iterdir())
    assert [path.read_bytes() for path in quarantined] == [content]


def test_unreadable_key_raises_an_error(identity: IdentityFile, state: StateDirectory) -> None:
    (state.path / "identity.pem").mkdir()

    with pytest.raises(StateError, match=r"identity\.pem is a directory, .*: remove it"):
        identity.load_or_create()


def test_key_that_cannot_be_written_raises_an_error(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="cannot be written"):
        IdentityFile(StateDirectory(tmp_path / "none")).load_or_create()
