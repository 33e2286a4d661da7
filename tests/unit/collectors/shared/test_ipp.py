import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.shared import ipp
from tests.paths import FIXTURES

IPP_FIXTURES = FIXTURES / "network/ipp"
PRINTER = (IPP_FIXTURES / "ippeveprinter_attributes.bin").read_bytes()
QUEUES = (IPP_FIXTURES / "cups_get_printers.bin").read_bytes()


def item(tag: int, name: str, value: bytes) -> bytes:
    """Return an encoded attribute with one value (RFC 8010, 3.1.4)."""
    sized = (struct.pack("!H", len(part)) + part for part in (name.encode(), value))
    return bytes([tag]) + b"".join(sized)


def message(*items: bytes, status: int = 0, end: bytes = b"\x03") -> bytes:
    """Return an IPP response with these groups and attributes."""
    return struct.pack("!BBHI", 2, 0, status, 1) + b"".join(items) + end


def test_a_request_has_the_form_of_rfc_8010():
    request = ipp.encode_request(
        ipp.GET_PRINTER_ATTRIBUTES,
        requested=("printer-uuid", "printer-state"),
        printer_uri="ipp://10.0.0.9:631/ipp/print",
    )
    assert request == (
        b"\x01\x01\x00\x0b\x00\x00\x00\x01\x01"
        b"\x47\x00\x12attributes-charset\x00\x05utf-8"
        b"\x48\x00\x1battributes-natural-language\x00\x02en"
        b"\x45\x00\x0bprinter-uri\x00\x1cipp://10.0.0.9:631/ipp/print"
        b"\x44\x00\x14requested-attributes\x00\x0cprinter-uuid"
        b"\x44\x00\x00\x00\x0dprinter-state\x03"
    )


def test_the_captured_answer_of_ippeveprinter_is_decoded():
    response = ipp.decode_response(PRINTER)
    (printer,) = response.printers
    assert response.is_successful
    assert printer.text("printer-uuid") == "urn:uuid:d4d1e202-baff-3fff-46ff-3ab6dbae6ea6"
    assert printer.text("printer-make-and-model") == "Brother HL-L2350DW"
    assert printer.integer("printer-state") == 3
    assert printer.texts("printer-state-reasons") == ("none",)
    assert len(printer.texts("media-supported")) > 1
    assert printer.text("media-col-default") is None
    assert list(printer.values("media-col-default")) == []  # a collection
    assert "media-col-default" in printer.attributes
    assert not printer.attributes.keys() & {"media-size", "media-type"}


def test_the_captured_answer_of_cups_is_decoded():
    names = [group.text("printer-name") for group in ipp.decode_response(QUEUES).printers]
    assert names == ["bar", "kitchen", "till", "usbq"]


def test_groups_and_multiple_values_are_decoded():
    response = ipp.decode_response(
        message(
            b"\x01",
            item(0x47, "attributes-charset", b"utf-8"),
            b"\x04",
            item(0x44, "reasons", b"media-empty"),
            item(0x44, "", b"cover-open"),
            item(0x35, "info", b"\x00\x02en\x00\x03Bar"),
            item(0x22, "accepting", b"\x01"),
            item(0x13, "nothing", b""),
            item(0x30, "raw", b"\x01\x02"),
        )
    )
    (printer,) = response.printers
    assert printer.texts("reasons") == ("media-empty", "cover-open")
    assert printer.text("info") == "Bar"
    assert printer.boolean("accepting") is True
    assert printer.integer("accepting") is None
    assert printer.texts("nothing") == ()
    assert list(printer.attributes.values())[-1] == [b"\x01\x02"]


def test_members_of_a_collection_are_no_attributes_of_the_printer():
    collection = (
        item(0x34, "media-col", b""),
        item(0x4A, "", b"size"),
        item(0x34, "", b""),
        item(0x4A, "", b"x"),
        item(0x21, "", b"\0\0\0\x05"),
        item(0x37, "", b""),
        item(0x4A, "", b"printer-name"),
        item(0x42, "", b"no printer's"),
        item(0x42, "", b"second"),
        item(0x37, "", b""),
        item(0x34, "", b""),
        item(0x37, "", b""),
    )
    response = ipp.decode_response(message(b"\x04", *collection, item(0x42, "after", b"ok")))
    (printer,) = response.printers
    assert list(printer.attributes.items()) == [("media-col", []), ("after", ["ok"])]
    assert printer.text("printer-name") is None


# The beginning and end of a collection, and a member that is itself a collection (RFC 8010, 3.1.6).
BEGIN, END = item(0x34, "a", b""), item(0x37, "", b"")
DEEPER = item(0x4A, "", b"m") + item(0x34, "", b"")


@pytest.mark.parametrize(
    ("items", "reason"),
    [
        (item(0x44, "a", b"b"), "outside any group"),
        (b"\x04" + BEGIN, "has no end"),
        (b"\x04" + BEGIN + b"\x04" + END, "has no end"),
        (b"\x04" + END, "has no beginning"),
        (b"\x04" + BEGIN + DEEPER * ipp.COLLECTION_DEPTH_MAX, "nested too deeply"),
        (b"\x04" * (ipp.ATTRIBUTES_MAX + 1), "more attributes"),
    ],
)
def test_a_malformed_ipp_response_raises_an_error(items: bytes, reason: str):
    with pytest.raises(ipp.IppError, match=reason):
        ipp.decode_response(message(items))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x02\x00\x00",
        message(b"\x04", end=b""),
        message(b"\x04", b"\x44\x00\xff", end=b""),
        message(b"\x04", item(0x44, "a", b"b")[:-1], end=b""),
        message(b"\x04", item(0x35, "info", b"\x00")),
    ],
)
def test_a_truncated_ipp_response_raises_an_error(data: bytes):
    with pytest.raises(ipp.IppError):
        ipp.decode_response(data)


def test_more_attributes_than_the_bound_are_an_error():
    with pytest.raises(ipp.IppError, match="more attributes"):
        ipp.decode_response(message(b"\x04", item(0x44, "", b"") * (ipp.ATTRIBUTES_MAX + 1)))


@given(st.binary(max_size=400))
def test_any_bytes_decode_or_raise_ipp_error(data: bytes):
    with suppress(ipp.IppError):
        ipp.decode_response(message(data, end=b""))


@given(st.data())
def test_a_damaged_response_decodes_or_raises_ipp_error(data: st.DataObject):
    damaged = bytearray(QUEUES)
    for _ in range(data.draw(st.integers(1, 8))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with suppress(ipp.IppError):
        ipp.decode_response(bytes(damaged))


@given(st.lists(st.text(max_size=50), min_size=1, max_size=8), st.text(max_size=50))
def test_encoded_requests_can_be_decoded(requested: list[str], uri: str):
    request = ipp.encode_request(0x000A, requested=requested, printer_uri=uri, which_jobs="all")
    (group,) = ipp.decode_response(request).groups
    assert group.texts("requested-attributes") == tuple(requested)
    assert group.text("printer-uri") == uri
    assert group.text("which-jobs") == "all"
