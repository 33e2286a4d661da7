"""Reads the title of a web page in any charset, and the realm of its login. No I/O.

Embedded servers declare their charset in the header, in the page or nowhere, and the declaration is
often wrong. Therefore bytes that are valid UTF-8 are always decoded as UTF-8. A title that only
names an error, a redirection or a generic page is ignored, because the report shows the title as
the name of a device.
"""

import codecs
import html
import re
from http import HTTPStatus

from collectors.shared.http import HttpReply
from collectors.shared.text import clean_text

TEXT_MAX = 255
_META_WITHIN = 4096
"""The charset is searched in this many bytes of a page. Browsers read 1,024 (HTML, 13.2.3.2)."""

_NOT_SEARCHED = re.compile(
    rb"<!--.*?(?:-->|\Z)|<(script|style|svg|template)\b.*?(?:</\1\s*>|\Z)",
    re.IGNORECASE | re.DOTALL,
)
"""Parts of a page in which a title is not the title of the page."""
_TITLE = re.compile(rb"<title[^>]{0,256}>([^<]{0,2048})", re.IGNORECASE)
_CHARSET = re.compile(rb"charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)
_REALM = re.compile(r"\brealm\s*=\s*(?:\"([^\"]{0,512})\"|'([^']{0,512})'|([^\s,;]{1,512}))", re.I)

_WIDER = {"gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932", "iso8859-1": "cp1252"}
"""Browsers decode each of these charsets as the wider charset beside it (WHATWG Encoding, 4.2)."""

_STATUS = re.compile(r"(?:HTTP\S* )?(?:error:? )?([345]\d\d)\b[\s:,-]*(.*)", re.IGNORECASE)
_PHRASES = tuple(status.phrase.lower() for status in HTTPStatus if status >= 300)
_OLD_PHRASES = ("moved temporarily", "document moved", "document has moved", "object moved")
_GENERIC_TITLE = re.compile(
    r"(please )?wait\W*|redirect(ing|ion)?\W*|loading\W*|(web )?(log|sign) ?(in|on)( page)?|"
    r"error( page)?|protected object|(site or )?page not found|untitled( document)?|document|"
    r"new page( \d+)?|index( of /?)?|(index|default|main|login)\.\w{2,5}|home( ?page)?|"
    r"main( page)?|welcome|title|web ?server|default( web ?site page)?|access( denied| error)?|"
    r"authentication( required)?|config(uration)?|secure|private|restricted( area)?|null|none|"
    r"unknown|protected( area)?|system setup|level_?[ ]?15[ _\w]*|webpage|frameset|top|\W*|"
    r"(\d{1,3}\.){3}\d{1,3}(:\d+)?",
    re.IGNORECASE,
)


def parse_title(reply: HttpReply) -> str | None:
    """Return the title of a page with its entities resolved, or None. Never raises."""
    title = _TITLE.search(_NOT_SEARCHED.sub(b" ", reply.body))
    if title is None:
        return None
    charset = _CHARSET.search((reply.header("content-type") or "").encode("latin-1", "replace"))
    charset = charset or _CHARSET.search(reply.body, 0, _META_WITHIN)
    return _meaningful(html.unescape(_decode(title[1], charset[1].decode() if charset else "")))


def parse_realm(reply: HttpReply) -> str | None:
    """Return the realm of a login (RFC 9110, section 11.5), or None. Never raises."""
    match = _REALM.search(reply.header("www-authenticate") or "")
    return _meaningful(next(filter(None, match.groups()), "")) if match else None


def _meaningful(text: str) -> str | None:
    clean = clean_text(text, TEXT_MAX)
    status = _STATUS.fullmatch(clean)
    phrase = (status[2] if status else clean).lower().rstrip("!.")
    is_error = phrase in _PHRASES or phrase in _OLD_PHRASES
    if status and status[1] in {str(int(known_status)) for known_status in HTTPStatus}:
        is_error |= not phrase or phrase.startswith((*_PHRASES, *_OLD_PHRASES, "error", "page"))
    return None if is_error or _GENERIC_TITLE.fullmatch(clean) else clean


def _decode(data: bytes, declared_charset: str) -> str:
    """Decode a text with the first charset in which all of its bytes are valid.

    UTF-8 is tried first, and then the declared charset. Then a Chinese and a Japanese charset are
    tried, but their result is used only if it looks like Chinese or Japanese. If no charset fits,
    the text is decoded as Windows-1252.
    """
    for charset in ("utf-8", _python_name(declared_charset)):
        if charset and (text := _decode_strictly(data, charset)) is not None:
            return text
    chinese = _decode_strictly(data, "gb2312") or ""
    japanese = _decode_strictly(data, "cp932") or ""
    if _CJK_RUN.search(chinese):
        return chinese
    # A text with accented letters may decode to a few CJK characters by accident. It never decodes
    # to kana, and never mostly to CJK characters.
    cjk_count, letters = len(_CJK.findall(japanese)), sum(map(str.isalpha, japanese))
    if _KANA.search(japanese) or (cjk_count > 1 and cjk_count * 2 >= letters):
        return japanese
    return data.decode("cp1252", "replace")


_CJK = re.compile("[\u3040-\u9fff]")
_CJK_RUN = re.compile("[\u3040-\u9fff]{2}")
_KANA = re.compile("[\u3040-\u30ff]")


def _python_name(charset: str) -> str | None:
    try:
        name = codecs.lookup(charset).name
    except (LookupError, ValueError):
        return None
    return _WIDER.get(name, name)


def _decode_strictly(data: bytes, charset: str) -> str | None:
    try:
        return data.decode(charset)
    except (ValueError, LookupError):  # LookupError: not a text codec
        return None
