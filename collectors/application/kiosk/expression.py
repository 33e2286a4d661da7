"""The JavaScript expressions that are evaluated in the kiosk's page. They only read values.

No text of an expression comes from the page or the configuration. The expressions run in an
isolated world, where they see the browser's own functions even if a script of the page has replaced
them. They request no permission: navigator.permissions.query only returns the state of a
permission. They open nothing, and read neither the document's content nor its address. Each value
has its own time limit. If a promise never settles, only its value is missing.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

VALUE_TIMEOUT_MS: Final = 700
DRAWING_MS: Final = 500
"""A visible page draws a frame within this time, even on a slow machine."""

VISIBILITY: Final = "JSON.stringify([document.visibilityState === 'visible', document.hasFocus()])"
"""Returns two booleans: the page is visible on the screen, and the page has the focus."""


class Value(NamedTuple):
    """A value to read from the page.

    ``source`` is the name of the value in the browser's API. The report shows this name.
    ``expression`` reads the value. If ``expression`` is empty, ``source`` is evaluated instead.
    """

    source: str
    expression: str = ""

    @property
    def reader(self) -> str:
        """A JavaScript function that returns the value, or undefined if an object is missing."""
        return f"async () => {self.expression or self.source.replace('.', '?.')}"


def _permission(name: str, old_name: str = "") -> Value:
    """Return a `Value` that reads the state of a permission.

    A browser that does not support ``name`` is queried for ``old_name``.
    """
    names = f'"{name}", "{old_name or name}"'
    return Value("navigator.permissions.query", f"permission({names})")


_NAMES_OF_BLUETOOTH: Final = """navigator.bluetooth?.getDevices &&
      names(await navigator.bluetooth.getDevices(), (device) => device.name ?? "unnamed")"""
_NAMES_OF_USB: Final = """navigator.usb?.getDevices &&
      names(await navigator.usb.getDevices(), (device) =>
        `${device.productName ?? "unnamed"} (${hex(device.vendorId)}:${hex(device.productId)})`)"""
_DRAWS: Final = f"""readIfVisible(() => new Promise((settle) => {{
      requestAnimationFrame(() => settle(true));
      setTimeout(() => settle(false), {DRAWING_MS});
    }}))"""
_PAINTED: Final = """readIfVisible(() =>
      performance.getEntriesByName("first-contentful-paint").length > 0)"""

BROWSER: Final[Mapping[str, Value]] = {
    "browser.userAgent": Value("navigator.userAgent"),
    "browser.platform": Value("navigator.platform"),
    "browser.logicalProcessors": Value("navigator.hardwareConcurrency"),
    "browser.approximateMemoryGiB": Value("navigator.deviceMemory"),
    "browser.heapUsedBytes": Value("performance.memory", "performance.memory?.usedJSHeapSize"),
    "browser.heapLimitBytes": Value("performance.memory", "performance.memory?.jsHeapSizeLimit"),
    "browser.online": Value("navigator.onLine"),
    "browser.connectionType": Value("navigator.connection.type"),
    "browser.effectiveConnectionType": Value("navigator.connection.effectiveType"),
    "browser.downlinkMbps": Value("navigator.connection.downlink"),
    "browser.roundTripMs": Value("navigator.connection.rtt"),
    "browser.saveData": Value("navigator.connection.saveData"),
    "browser.language": Value("navigator.language"),
    "browser.languages": Value("navigator.languages", "[...navigator.languages]"),
    "browser.timeZone": Value(
        "Intl.DateTimeFormat", "Intl.DateTimeFormat().resolvedOptions().timeZone"
    ),
    "browser.displayWidthPixels": Value("screen.width"),
    "browser.displayHeightPixels": Value("screen.height"),
    "browser.pixelRatio": Value("devicePixelRatio"),
    "browser.orientation": Value("screen.orientation", "screen.orientation?.type"),
    "browser.visibility": Value("document.visibilityState"),
    "browser.focused": Value("document.hasFocus", "document.hasFocus()"),
    "browser.pageUptimeSeconds": Value("performance.now", "performance.now() / 1000"),
    "browser.secureContext": Value("isSecureContext"),
    "browser.cookiesEnabled": Value("navigator.cookieEnabled"),
    "browser.originQuotaBytes": Value("navigator.storage.estimate", "(await storage())?.quota"),
    "browser.originUsageBytes": Value("navigator.storage.estimate", "(await storage())?.usage"),
    "browser.batteryLevelFraction": Value("navigator.getBattery", "(await battery())?.level"),
    "browser.batteryCharging": Value("navigator.getBattery", "(await battery())?.charging"),
    "browser.permission.geolocation": _permission("geolocation"),
    "browser.permission.notifications": _permission("notifications"),
    "browser.permission.camera": _permission("camera"),
    "browser.permission.microphone": _permission("microphone"),
    "browser.bluetoothAuthorizedDevices": Value(
        "navigator.bluetooth.getDevices", _NAMES_OF_BLUETOOTH
    ),
    "browser.usbAuthorizedDevices": Value("navigator.usb.getDevices", _NAMES_OF_USB),
}
"""The browser fields of the contract."""

STATE: Final[Mapping[str, Value]] = {
    "kiosk.drawing": Value("requestAnimationFrame", _DRAWS),
    "kiosk.painted": Value("first-contentful-paint", _PAINTED),
    "kiosk.localNetworkPermission": _permission("local-network", "local-network-access"),
    "kiosk.loopbackPermission": _permission("loopback-network", "local-network-access"),
}
"""Values that show whether the page draws, and whether it may access the local network and the
programs on this machine."""

# The JavaScript functions `text` and `names` limit the size of the reply. `parse_values`, which
# parses the reply, shortens the values further.
_EXPRESSION: Final = """
(async () => {
  const battery = async () => navigator.getBattery && navigator.getBattery();
  const storage = async () => navigator.storage && navigator.storage.estimate();
  const text = (value) => String(value).slice(0, 512);
  const names = (devices, name) => devices.slice(0, 33).map((device) => text(name(device)));
  const readIfVisible = (read) => {
    if (document.visibilityState === "visible") return read();
    throw new DOMException("", "PageHidden");
  };
  const hex = (number) => number.toString(16).padStart(4, "0");
  const state = async (name) => (await navigator.permissions.query({ name })).state;
  const permission = (name, oldName = name) => state(name).catch(() => state(oldName));
  const readers = {
READERS
  };
  const timeout = () => new Promise((_, reject) =>
    setTimeout(() => reject(new DOMException("", "TimeoutError")), TIMEOUT_MS));
  const result = async ([key, read]) => {
    try {
      const value = await Promise.race([read(), timeout()]);
      return [key, { value: typeof value === "string" ? text(value) : value ?? null }];
    } catch (error) {
      return [key, { error: text(error?.name ?? "Error") }];
    }
  };
  return JSON.stringify(Object.fromEntries(await Promise.all(Object.entries(readers).map(result))));
})()
""".replace("TIMEOUT_MS", str(VALUE_TIMEOUT_MS))


def build_expression(values: Mapping[str, Value]) -> str:
    """Return an expression that reads ``values``.

    Its result is the JSON text of an object that has ``{value}`` or ``{error}`` for each key.
    """
    readers = (f'    "{key}": {value.reader},' for key, value in values.items())
    return _EXPRESSION.replace("READERS", "\n".join(readers))
