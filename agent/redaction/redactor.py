"""Masks secrets in text: known secrets in all notations, and text that resembles a secret."""

from collections.abc import Iterable
from typing import Any

from agent.redaction.forms import forms_of
from agent.redaction.named_values import named_value_spans, names_a_secret
from agent.redaction.shapes import MASK, mask_typical_secrets
from agent.redaction.userinfo import replace_userinfo, userinfo_spans


class Redactor:
    """Masks secrets. The secrets in ``known`` are masked even if they do not resemble a secret."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._forms = forms_of(known)

    def redact(self, text: str) -> str:
        """Return ``text`` with every secret replaced by asterisks."""
        text = mask_typical_secrets(self.mask_known(text))
        for _ in range(2):  # a masked part can reveal that the text beside it is also secret
            spans = sorted((*named_value_spans(text), *userinfo_spans(text)))
            if not spans:
                break
            text = _mask(text, spans)
        return text

    def mask_known(self, text: str) -> str:
        """Mask only the known secrets. This is sufficient for text that the agent creates."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, MASK)
        return text

    def redact_value(self, key: str, value: Any) -> Any:
        """Mask secrets in the value of ``key``, including nested values.

        If ``key`` names a secret, the whole value is masked. If not, only secrets in the texts of
        the value are masked.
        """
        is_secret = names_a_secret(key)
        if isinstance(value, dict):
            return {
                self.redact(str(name)): self.redact_value(key if is_secret else str(name), item)
                for name, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.redact_value(key, item) for item in value]
        if value is None or isinstance(value, bool) or value == "":
            return value
        if is_secret:
            return MASK
        if not isinstance(value, str):
            return value
        text = self.mask_known(value)
        if key.lower().endswith("proxy"):
            text = replace_userinfo(text, f"{MASK}@")
        return self.redact(text)


def _mask(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return ``text`` with the sorted spans replaced. Overlapping spans are replaced together."""
    parts: list[str] = []
    masked_until = 0
    for begin, end in spans:
        if begin > masked_until or not parts:
            parts += [text[masked_until:begin], MASK]
        masked_until = max(masked_until, end)
    return "".join((*parts, text[masked_until:]))
