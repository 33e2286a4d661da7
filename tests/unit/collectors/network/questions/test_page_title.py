import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.network.discoveries import OpenPort
from collectors.network.observations import Evidence
from collectors.network.questions.page_title import parse_realm, parse_title
from collectors.network.questions.server_header import parse_product
from collectors.network.questions.web import read_web
from collectors.shared.http import HttpReply


def reply(body: bytes | str = b"", status: int = 200, **headers: str) -> HttpReply:
    pairs = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return HttpReply(status, pairs, body.encode() if isinstance(body, str) else body)


@pytest.mark.parametrize(
    ("title", "charset"),
    [
        ("Accès au réseau généraux", "cp1252"),
        ("Configuração do roteador", "cp1252"),
        ("Éléments de réglage", "cp1252"),
        ("Gerät für das Büro", "cp1252"),
        ("プリンター", "shift_jis"),
        ("設定画面", "shift_jis"),
        ("网络摄像机", "gb2312"),
        ("EPSON TM-m30 打印机", "gb2312"),
        ("Türkçe yazıcı", "utf-8"),
    ],
)
def test_titles_of_undeclared_charsets_are_decoded(title: str, charset: str) -> None:
    assert parse_title(reply(f"<title>{title}</title>".encode(charset))) == title


@pytest.mark.parametrize(
    ("title", "charset", "declared"),
    [
        ("Über uns", "cp1252", "iso-8859-1"),
        ("Принтер", "koi8-r", "KOI8-R"),
        ("Принтер", "cp1251", "windows-1251"),
        ("打印机 “A”", "gb18030", "gb2312"),
        ("①番プリンター", "cp932", "Shift_JIS"),
        ("プリンター", "euc-jp", "euc-jp"),
        ("Prêt", "utf-8", "iso-8859-1"),
        ("Prêt", "cp1252", "utf-8"),
        ("Prêt", "cp1252", "no-such-charset"),
        ("Prêt", "cp1252", "base64"),
    ],
)
@pytest.mark.parametrize("declared_in", ["header", "meta", "http-equiv"])
def test_titles_of_declared_charsets_are_decoded(
    title: str, charset: str, declared: str, declared_in: str
) -> None:
    content_type = f"text/html; charset={declared}"
    meta = {
        "header": "",
        "meta": f'<meta charset="{declared}">',
        "http-equiv": f"<META HTTP-EQUIV='Content-Type' CONTENT='{content_type}'>",
    }[declared_in]
    page = f"<html><head>{meta}<title>{title}</title>".encode(charset)
    headers = {"content_type": content_type} if declared_in == "header" else {}
    assert parse_title(reply(page, **headers)) == title


@pytest.mark.parametrize(
    "title",
    [
        "302 Found",
        "301 Moved Permanently",
        "HTTP 404 - Not Found",
        "401 Unauthorized",
        "Error 403: Forbidden",
        "500",
        "Document Moved",
        "Object moved",
        "Unauthorized",
        "Index of /",
        "index.html",
        "Login",
        "Loading...",
        "Please wait...",
        "192.168.1.10",
        "-",
        " &nbsp; ",
        "",
    ],
)
def test_titles_that_name_no_device_are_ignored(title: str) -> None:
    assert parse_title(reply(f"<title>{title}</title>")) is None


@pytest.mark.parametrize(
    "title",
    ["3CX Phone System", "500 Bar Till", "404 Cafe Kitchen", "Login to Kitchen NVR", "Foundry"],
)
def test_titles_that_name_a_device_are_used(title: str) -> None:
    assert parse_title(reply(f"<title>{title}</title>")) == title


@pytest.mark.parametrize(
    "page",
    [
        "<script>document.write('<title>No</title>')</script><title>Yes</title>",
        "<svg role=img><title>No</title></svg><title>Yes</title>",
        "<!-- <title>No</title> --><title>Yes</title>",
        "<STYLE>a{}</STYLE ><Title id=x>Yes</Title>",
        "<title>Yes</title><svg><title>No</title>",
    ],
)
def test_only_the_title_of_the_page_itself_is_used(page: str) -> None:
    assert parse_title(reply(page)) == "Yes"


def test_titles_in_pictures_and_scripts_are_ignored() -> None:
    assert parse_title(reply("<svg><title>logo</title></svg>")) is None
    assert parse_title(reply("<script>var t='<title>x</title>'")) is None


def test_the_title_of_an_error_page_is_used() -> None:
    assert parse_title(reply("<title>Kitchen camera</title>", 404)) == "Kitchen camera"


@pytest.mark.parametrize(
    ("header", "realm"),
    [
        ('Basic realm="NETGEAR R7000P"', "NETGEAR R7000P"),
        ('Digest qop="auth", realm="DCS-2530L", nonce="ab,c"', "DCS-2530L"),
        ("Basic realm='Bar'", "Bar"),
        ("Basic Realm=Bar, charset=utf-8", "Bar"),
        ('Basic realm="index.html"', None),
        ('Basic realm="192.168.0.1"', None),
        ('Basic realm=""', None),
        ("Negotiate", None),
    ],
)
def test_realms_are_parsed_from_www_authenticate(header: str, realm: str | None) -> None:
    assert parse_realm(reply(status=401, www_authenticate=header)) == realm


def test_only_server_headers_of_devices_name_a_product() -> None:
    assert parse_product("DNVRS-Webs") == "DNVRS-Webs"
    assert parse_product("CUPS/2.4 IPP/2.1") == "CUPS/2.4 IPP/2.1"
    for software in ("nginx", "Apache/2.4 (Debian)", "lighttpd/1.4", "Boa/0.94.13", "", None):
        assert parse_product(software) is None


def test_title_server_and_realm_of_a_page_are_read() -> None:
    server = "HP HTTP Server; HP Photosmart C309a series - CC335A; Serial Number: X; Built:Wed"
    assert read_web(OpenPort("10.0.0.9", 80), reply(server=server)) == (
        Evidence("10.0.0.9", 80, make_model="HP Photosmart C309a series", server=server),
    )
    evidence = read_web(OpenPort("10.0.0.9", 80), reply(www_authenticate='Basic realm="Shelly"'))
    assert evidence == (Evidence("10.0.0.9", 80, realm="Shelly"),)
    assert read_web(OpenPort("10.0.0.9", 80), reply("<p>nothing")) == ()


@given(st.binary(max_size=400), st.text(max_size=40), st.text(max_size=60))
def test_title_and_realm_of_any_reply_are_clean_and_bounded(
    body: bytes, charset: str, realm: str
) -> None:
    any_reply = reply(
        b"<meta charset=" + body[:9] + b"><title>" + body,
        content_type=f"text/html; charset={charset}",
        www_authenticate=f"Basic realm={realm}",
    )
    for text in (parse_title(any_reply), parse_realm(any_reply)):
        assert text is None or (text and len(text) <= 255 and "\x1b" not in text)


def test_a_page_with_thousands_of_unclosed_tags_is_parsed_quickly() -> None:
    assert parse_title(reply(b"<script" * 9000)) is None
    assert parse_title(reply(b"<!--" * 16000)) is None
    assert parse_title(reply(b"<svg></sv" * 7000)) is None
