"""Parses the IEEE 1284 device id of a printer, such as ``MFG:Brother;MDL:HL-L2350DW;SN:E1234;``."""

from collectors.shared.text import clean_text

SERIAL_KEYS = ("SN", "SERN", "SERIALNUMBER")
_VALUE_MAX = 255


def parse_device_id(text: str) -> dict[str, str]:
    """Return the values of a device id by key. The keys are in upper case."""
    pairs = (part.partition(":") for part in text.split(";"))
    return {key.strip().upper(): clean_text(value, _VALUE_MAX) for key, _, value in pairs if value}


def model_of(device_id: dict[str, str]) -> str | None:
    """Return maker and model, with the maker only once. None if the device id has neither."""
    maker = device_id.get("MFG") or device_id.get("MANUFACTURER") or ""
    model = device_id.get("MDL") or device_id.get("MODEL") or ""
    return join_model(maker, model) or None


def join_model(maker: str, model: str) -> str:
    """Return ``maker model``, or the model alone if it starts with the maker."""
    return model if model.lower().startswith(maker.lower()) else f"{maker} {model}".strip()
