"""The device's Ed25519 key. It is created once, stays on this machine, and signs challenges.

The functions import `cryptography` when they run, because only enrollment needs it. This saves
memory in a daemon that is already enrolled.
"""

import base64
import logging
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from agent.adapters.failpoints import Failpoint, passing
from agent.adapters.storage.atomic_file import write_atomically
from agent.adapters.storage.state import StateDirectory
from agent.errors import ServiceError, StateError, as_state_error

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

log = logging.getLogger(__name__)

KEY_NAME = "identity.pem"
KEY_MAX_BYTES = 64 * 1024

SignatureEncoding = Literal["hex", "base64"]
NonceEncoding = Literal["utf8", "base64", "hex"]

# Fixed, so that a key always has the same instance id.
_INSTANCE_NAMESPACE = uuid.UUID("3b0a1f5e-6f0c-4b0e-9d0c-6a3c9f1d7e52")


class NonceError(ServiceError):
    """The challenge's nonce is not in the configured encoding."""


class IdentityFile:
    """The file of the private key."""

    def __init__(self, state: StateDirectory) -> None:
        self._state = state
        self._path = state.path / KEY_NAME

    def exists(self) -> bool:
        return self._path.exists()

    def load_or_create(self) -> "SigningKey":
        """Return the key. Create a new one if the file is missing or contains no valid key.

        Raises StateError if the file exists and cannot be opened, or if the new key cannot be
        written.
        """
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        try:
            pem = self._state.read(KEY_NAME, KEY_MAX_BYTES)
        except FileNotFoundError:
            return self._create()
        except OSError as error:
            raise StateError(f"{self._path} cannot be read: {error.strerror}") from None
        try:
            key = serialization.load_pem_private_key(pem, password=None)
            if not isinstance(key, Ed25519PrivateKey):
                raise ValueError("not an Ed25519 key")
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            # TypeError: the key is encrypted.
            log.error("the device's key cannot be read (%s): creating a new identity", error)
            self.quarantine_file()
            return self._create()
        return SigningKey(key)

    def quarantine_file(self) -> Path:
        """Move the key to the quarantine, so that `load_or_create` creates a new key."""
        return self._state.quarantine_file(self._path)

    def _create(self) -> "SigningKey":
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        key = Ed25519PrivateKey.generate()
        pem = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        with (
            as_state_error(f"{self._path} cannot be written"),
            passing(Failpoint.IDENTITY_WRITTEN),
        ):
            write_atomically(self._path, pem)
        return SigningKey(key)


class SigningKey:
    """The private key in memory."""

    def __init__(self, key: "Ed25519PrivateKey") -> None:
        self._key = key

    @property
    def public_key(self) -> str:
        """Return the key's 44-byte SubjectPublicKeyInfo (RFC 8410) as 88 hex digits."""
        from cryptography.hazmat.primitives import serialization

        form = serialization.PublicFormat.SubjectPublicKeyInfo
        return self._key.public_key().public_bytes(serialization.Encoding.DER, form).hex()

    @property
    def instance_id(self) -> uuid.UUID:
        """Return the device's id, which is derived from the key. A new key means a new device."""
        return uuid.uuid5(_INSTANCE_NAMESPACE, self.public_key)

    def sign(
        self, nonce: str, nonce_encoding: NonceEncoding, signature_encoding: SignatureEncoding
    ) -> str:
        """Return the signature (RFC 8032) over the nonce. Raises NonceError."""
        signature = self._key.sign(_nonce_bytes(nonce, nonce_encoding))
        if signature_encoding == "hex":
            return signature.hex()
        return base64.b64encode(signature).decode()


def _nonce_bytes(nonce: str, encoding: NonceEncoding) -> bytes:
    try:
        if encoding == "hex":
            return bytes.fromhex(nonce)
        if encoding == "base64":
            return base64.b64decode(nonce, validate=True)
        return nonce.encode()
    except ValueError:
        raise NonceError(f"the nonce is not {encoding}: see enrollment.nonce_encoding") from None
