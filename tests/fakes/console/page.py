"""The console's page in a browser: the user's actions, and the visible content."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any, Final

from tests.scenario.pictures.browser import Browser

WITHIN_S: Final = 240
"""The time limit of each wait."""
POLL_S: Final = 0.03
VIEWPORTS: Final = {"narrow": (360, 740), "wide": (1440, 900)}
SCHEMES: Final = ("light", "dark")
WATCH: Final = """
window.wrong = [];
addEventListener("error", (event) => wrong.push(String(event.message)));
addEventListener("unhandledrejection", (event) => wrong.push(String(event.reason)));
addEventListener("securitypolicyviolation", (event) => wrong.push(event.violatedDirective));
const { setAttribute } = Element.prototype;
Element.prototype.setAttribute = function (name, value) {
  if (String(value).includes("NaN")) wrong.push(`${this.localName}: ${name} is ${value}`);
  setAttribute.call(this, name, value);
};
"""
"""Records in ``window.wrong``: errors of scripts, violations of the Content Security Policy, and
attributes whose value contains NaN."""
OVERFLOWS: Final = """[...document.querySelectorAll("body, #view, #view *, main *")].filter(
  (each) =>
  !each.closest(".scroll") &&
  each.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
  .map((each) => each.tagName + "." + each.className).slice(0, 5).join() || 'fits'"""
"""Up to five elements that extend beyond the right edge of the window, or ``fits``."""
CONTRAST: Final = "color-contrast"
"""axe-core's rule for the contrast of text. It takes most of axe-core's time."""
SMALL_TEXT: Final = {
    "checks": {
        CONTRAST: {
            "options": {
                "ignoreUnicode": True, "largeTextPt": 1000, "boldTextPt": 1000, "boldValue": 700,
                "contrastRatio": {"normal": {"expected": 4.5}, "large": {"expected": 4.5}},
                "pseudoSizeThreshold": 0.25, "shadowOutlineEmMax": 0.2, "textStrokeEmMin": 0.03,
            }
        }
    }
}  # fmt: skip
"""Requires for large text the same contrast as for small text, because contrast is checked only in
the wide window, and the same text can be smaller in a narrow window."""
LINKS: Final = "link-in-text-block"
"""axe-core's rule for links without underline. It compares their color with that of the text."""
AXE_OPTIONS: Final[dict[tuple[str, str], dict[str, Any]]] = {
    ("wide", "light"): SMALL_TEXT,
    ("wide", "dark"): {"runOnly": [CONTRAST, LINKS], **SMALL_TEXT},
    ("narrow", "light"): {"rules": {CONTRAST: {"enabled": False}}},
    ("narrow", "dark"): {"runOnly": [LINKS]},
}
"""axe-core's options for each width and color scheme.

The stylesheets change only colors for the dark scheme, and no colors for narrow windows
(tests/unit/test_stylesheets.py). So the wide window is enough for the contrast,
and the light scheme for the rules that do not read colors.
"""
AXE: Final = """axe.run(document, {
  ...OPTIONS,
  iframes: false,
  resultTypes: ["violations"],  // for other types, axe-core describes at most one element per rule
}).then((results) => ({
  passes: results.passes.length,
  rules: ["passes", "violations", "incomplete", "inapplicable"].flatMap(
    (outcome) => results[outcome].map((each) => each.id)),
  violations: results.violations.map((each) => ({ impact: each.impact, rule: each.id,
    at: each.nodes.slice(0, 5).map(
      (node) => node.target.join(" ") + ": " + node.failureSummary) })),
}))"""
FRAMES: Final = (
    "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"
)
"""Waits until the browser has drawn the page twice."""
KEYS: Final = {
    "Enter": 13, "Tab": 9, "Escape": 27, " ": 32, "ArrowDown": 40, "ArrowUp": 38,
}  # fmt: skip
"""The Windows virtual key code of each key."""
SHIFT: Final = 8
"""The bit of the Shift key in ``modifiers`` of `Input.dispatchKeyEvent`."""
TABS_MAX: Final = 60
"""Maximum presses of Tab: enough to move the focus through a page once."""


class Page:
    """One browser tab with one window width. Methods that wait raise an error at the time limit.

    ``axe`` is the source of axe-core. If it is empty, `check_view` checks only the layout.
    ``pictures`` is the folder in which `check_view` saves pictures, or None.

    ``seen`` has the result of `check_view` for each view and color scheme: elements that do not fit
    the window, and the violations that axe-core reports.
    """

    def __init__(self, tab: Browser, width: str, axe: str, pictures: Path | None) -> None:
        self._tab = tab
        self._axe = axe
        self._pictures = pictures
        self.width = width
        self.seen: dict[str, dict[str, Any]] = {}

    async def send_command(self, method: str, **params: Any) -> dict[str, Any]:
        return await asyncio.to_thread(self._tab.call, method, **params)

    async def prepare(self) -> None:
        await self.send_command("Page.enable")
        await self.send_command("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
        await self._show("light")

    async def open(self, url: str) -> None:
        await asyncio.to_thread(self._tab.open, url)

    async def go(self, fragment: str) -> None:
        """Open a view of the console, for example ``#/devices``."""
        await self.run(f"location.hash = {json.dumps(fragment)}")

    async def run(self, expression: str) -> Any:
        result = await self.send_command(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {json.dumps(result)[:600]}")
        return result["result"].get("value")

    async def until(self, expression: str) -> Any:
        """Evaluate the expression until its value is true in JavaScript, and return this value. The
        value must not be a promise.

        The waits are in this process, because timers of a page do not run if its scripts are
        disabled.
        """
        script = (
            f"(() => {{ let value; try {{ value = ({expression}); }} catch (error) {{}} "
            "return value ? [value] : []; })()"
        )
        ends_s = time.monotonic() + WITHIN_S
        while not (values := await self.run(script)):
            if time.monotonic() > ends_s:
                text = await self.run("document.body.innerText")
                raise RuntimeError(f"{expression} is not true: {text}")
            await asyncio.sleep(POLL_S)
        return values[0]

    async def arrive(self, expression: str) -> None:
        """Wait until the expression is true, even if the browser loads a new page meanwhile.

        The expression is polled from outside the page, because a script inside a page ends when the
        browser leaves the page.
        """
        await asyncio.to_thread(self._tab.wait, expression)

    async def click(self, selector: str) -> None:
        element = f"document.querySelector({json.dumps(selector)})"
        await self.until(f"{element} && !{element}.disabled && {element}.ariaDisabled !== 'true'")
        await self.run(f"{element}.click()")

    async def click_at(self, x: int, y: int) -> None:
        """Press and release the mouse at a point of the window."""
        for kind in ("mousePressed", "mouseReleased"):
            await self.send_command(
                "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1
            )

    async def open_key_field(self) -> None:
        """Open the field for the API key. The page first shows e-mail address and password."""
        await self.until("document.activeElement.id === 'email'")
        await self.tab_to("#use-key")
        await self.press("Enter")
        await self.until("document.activeElement.id === 'key'")

    # ------------------------------------------------------------------------ the keyboard

    async def type(self, text: str) -> None:
        await self.send_command("Input.insertText", text=text)

    async def press(self, key: str, *, shift: bool = False) -> None:
        text = {"Enter": "\r", " ": " "}.get(key, "")
        code = {" ": "Space"}.get(key, key)
        for kind in ("keyDown", "keyUp"):
            await self.send_command(
                "Input.dispatchKeyEvent", type=kind, key=key, code=code,
                windowsVirtualKeyCode=KEYS[key], modifiers=SHIFT if shift else 0,
                **({"text": text} if text and kind == "keyDown" else {}),
            )  # fmt: skip

    async def tab_to(self, selector: str, *, back: bool = False) -> None:
        """Press Tab until the element has the focus, and check that the focus is visible."""
        for _ in range(TABS_MAX):
            await self.press("Tab", shift=back)
            if await self.has_focus(selector):
                try:
                    await self.until(f"({SHOWS_FOCUS})()")
                except RuntimeError as error:
                    raise RuntimeError(f"no visible focus on {await self.focused()}") from error
                return
        raise RuntimeError(f"Tab does not reach {selector}; the focus is on {await self.focused()}")

    async def has_focus(self, selector: str) -> bool:
        return bool(await self.run(f"document.activeElement.matches({json.dumps(selector)})"))

    async def focused(self) -> str:
        return str(await self.run("document.activeElement.outerHTML.slice(0, 200)"))

    # ------------------------------------------------------------------------ checks of the page

    async def check_view(self, name: str) -> None:
        """Record overflowing content and axe-core's violations in both color schemes.

        Takes pictures if a folder for them is set.
        """
        for scheme in SCHEMES:
            await self._show(scheme)
            await self.run(FRAMES)  # scripts of the page may apply the scheme some frames later
            seen: dict[str, Any] = {"layout": await self.run(OVERFLOWS)}
            if self._pictures is not None:
                file = self._pictures / f"{name}-{self.width}-{scheme}.png"
                await asyncio.to_thread(self._tab.shoot, file)
            if self._axe:
                # The page's own policy would block this script, so DevTools evaluates it.
                if not await self.run("Boolean(window.axe)"):
                    await self.send_command("Runtime.evaluate", expression=self._axe)
                options = json.dumps(AXE_OPTIONS[self.width, scheme])
                seen["axe"] = await self.run(AXE.replace("OPTIONS", options))
            self.seen[f"{name} {scheme}"] = seen
        await self._show("light")

    async def _show(self, scheme: str) -> None:
        await asyncio.to_thread(self._tab.set_view, *VIEWPORTS[self.width], scheme)


SHOWS_FOCUS: Final = """() => {
  const style = getComputedStyle(document.activeElement);
  const box = document.activeElement.getBoundingClientRect();
  return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2 &&
    box.bottom >= 0 && box.top <= innerHeight && box.right >= 0 && box.left <= innerWidth;
}"""
"""Whether the focused element has an outline and is in view. New rows can move the element out of
view until the browser has scrolled, so `Page.tab_to` evaluates this repeatedly."""
