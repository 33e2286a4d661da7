"""The questions put to the page: fixed expressions that read and change nothing.

They run in an isolated world, where the page's own scripts cannot have replaced what they call.
They ask no permission (navigator.permissions.query only tells), open nothing and touch neither
the document's content nor its address. Each value has its own time limit, so that one promise
the browser never settles costs one key.
"""

from typing import Final

VALUE_TIMEOUT_MS: Final = 700
DRAWING_MS: Final = 500
"""A page that is shown draws a frame within this time, also on a slow machine."""

SHOWN: Final = "JSON.stringify([document.visibilityState === 'visible', document.hasFocus()])"
"""Whether a page is the one on the screen, and whether it has the keyboard."""

_QUESTION: Final = """
(async () => {
  const battery = async () => navigator.getBattery && navigator.getBattery();
  const storage = async () => navigator.storage && navigator.storage.estimate();
  const text = (value) => String(value).slice(0, 512);
  const names = (devices, name) => devices.slice(0, 33).map((device) => text(name(device)));
  const shown = (read) => {
    if (document.visibilityState === "visible") return read();
    throw new DOMException("", "PageHidden");
  };
  const hex = (number) => number.toString(16).padStart(4, "0");
  const state = async (name) => (await navigator.permissions.query({ name })).state;
  const permission = (name, formerly = name) => () => state(name).catch(() => state(formerly));
  const readers = {
READERS
  };
  const late = () => new Promise((_, reject) =>
    setTimeout(() => reject(new DOMException("", "TimeoutError")), TIMEOUT_MS));
  const told = async ([key, read]) => {
    try {
      const value = await Promise.race([(async () => read())(), late()]);
      return [key, { value: typeof value === "string" ? text(value) : value ?? null }];
    } catch (error) {
      return [key, { error: text(error?.name ?? "Error") }];
    }
  };
  return JSON.stringify(Object.fromEntries(await Promise.all(Object.entries(readers).map(told))));
})()
""".replace("TIMEOUT_MS", str(VALUE_TIMEOUT_MS))

_BROWSER_READERS: Final = """
    "browser.userAgent": () => navigator.userAgent,
    "browser.platform": () => navigator.platform,
    "browser.logicalProcessors": () => navigator.hardwareConcurrency,
    "browser.approximateMemoryGiB": () => navigator.deviceMemory,
    "browser.heapUsedBytes": () => performance.memory?.usedJSHeapSize,
    "browser.heapLimitBytes": () => performance.memory?.jsHeapSizeLimit,
    "browser.online": () => navigator.onLine,
    "browser.connectionType": () => navigator.connection?.type,
    "browser.effectiveConnectionType": () => navigator.connection?.effectiveType,
    "browser.downlinkMbps": () => navigator.connection?.downlink,
    "browser.roundTripMs": () => navigator.connection?.rtt,
    "browser.saveData": () => navigator.connection?.saveData,
    "browser.language": () => navigator.language,
    "browser.languages": () => [...navigator.languages],
    "browser.timeZone": () => Intl.DateTimeFormat().resolvedOptions().timeZone,
    "browser.displayWidthPixels": () => screen.width,
    "browser.displayHeightPixels": () => screen.height,
    "browser.pixelRatio": () => devicePixelRatio,
    "browser.orientation": () => screen.orientation?.type,
    "browser.visibility": () => document.visibilityState,
    "browser.focused": () => document.hasFocus(),
    "browser.pageUptimeSeconds": () => performance.now() / 1000,
    "browser.secureContext": () => isSecureContext,
    "browser.cookiesEnabled": () => navigator.cookieEnabled,
    "browser.originQuotaBytes": async () => (await storage())?.quota,
    "browser.originUsageBytes": async () => (await storage())?.usage,
    "browser.batteryLevelFraction": async () => (await battery())?.level,
    "browser.batteryCharging": async () => (await battery())?.charging,
    "browser.permission.geolocation": permission("geolocation"),
    "browser.permission.notifications": permission("notifications"),
    "browser.permission.camera": permission("camera"),
    "browser.permission.microphone": permission("microphone"),
    "browser.bluetoothAuthorizedDevices": async () =>
      navigator.bluetooth?.getDevices &&
      names(await navigator.bluetooth.getDevices(), (device) => device.name ?? "unnamed"),
    "browser.usbAuthorizedDevices": async () =>
      navigator.usb?.getDevices &&
      names(await navigator.usb.getDevices(), (device) =>
        `${device.productName ?? "unnamed"} (${hex(device.vendorId)}:${hex(device.productId)})`),
"""

_STATE_READERS: Final = f"""
    "kiosk.drawing": () => shown(() => new Promise((told) => {{
      requestAnimationFrame(() => told(true));
      setTimeout(() => told(false), {DRAWING_MS});
    }})),
    "kiosk.painted": () => shown(() =>
      performance.getEntriesByName("first-contentful-paint").length > 0),
    "kiosk.localNetworkPermission": permission("local-network", "local-network-access"),
    "kiosk.loopbackPermission": permission("loopback-network", "local-network-access"),
"""

VALUES: Final = _QUESTION.replace("READERS", _BROWSER_READERS)
"""Tells the browser fields, as an object of {value} or {error} by key."""

STATE: Final = _QUESTION.replace("READERS", _STATE_READERS)
"""Tells in the same form whether the page draws, and whether it may reach its devices."""
