"""Tests of public keys and signatures in the forms that devices send."""

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from controlplane.remote_control.signatures import is_signed, parse_public_key, parse_signature

# RFC 8032, section 7.1, TEST 2. The signed message is the letter "r".
RFC_KEY = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"
RFC_SIGNATURE = (
    "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
    "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
)
DER_PREFIX = "302a300506032b6570032100"
"""The bytes before an Ed25519 key in its DER form (RFC 8410)."""


def test_the_example_of_the_rfc_is_accepted_as_hex_and_base64() -> None:
    raw = bytes.fromhex(RFC_SIGNATURE)
    forms = [
        RFC_SIGNATURE,
        RFC_SIGNATURE.upper(),
        base64.b64encode(raw).decode(),
        base64.urlsafe_b64encode(raw).decode(),
        base64.b64encode(raw).decode().rstrip("="),
    ]
    assert all(is_signed(DER_PREFIX + RFC_KEY, "r", form) for form in forms)
    assert not is_signed(DER_PREFIX + RFC_KEY, "s", RFC_SIGNATURE)


def test_a_public_key_of_88_hexadecimal_digits_is_parsed() -> None:
    public = Ed25519PrivateKey.generate().public_key()
    text = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo).hex()
    assert len(text) == 88
    assert parse_public_key(text) == public.public_bytes(Encoding.Raw, PublicFormat.Raw)


def test_x25519_keys_and_keys_in_upper_case_are_refused() -> None:
    other = X25519PrivateKey.generate().public_key()
    text = other.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo).hex()
    assert len(text) == 88
    assert parse_public_key(text) is None
    assert parse_public_key((DER_PREFIX + RFC_KEY).upper()) is None


@pytest.mark.parametrize("text", ["", "é" * 128, "0" * 127, "A" * 85, "=" * 88])
def test_a_signature_that_is_not_64_bytes_long_is_invalid(text: str) -> None:
    assert parse_signature(text) is None


@given(st.text(max_size=140), st.text(max_size=40), st.text(max_size=140))
def test_random_text_is_an_invalid_signature(key: str, nonce: str, signature: str) -> None:
    assert is_signed(key, nonce, signature) is False
    assert is_signed(DER_PREFIX + RFC_KEY, nonce, signature) is False
