"""Builds the MSI package from the program's directory. Needs wixl and msibuild (msitools).

wixl writes the files, components and properties. It does not support rollback actions, hidden
command lines and custom error messages, and it does not order actions reliably. Therefore msibuild
imports the tables for them afterwards, in the text format of Windows Installer (IDT).

Without a signature, the same directory, version, HELP_URL and SOURCE_DATE_EPOCH give the same
bytes.

Usage: python packaging/windows/build_msi.py ONEDIR VERSION OUTPUT_DIR
"""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

NAME: Final = "Venue agent"
PUBLISHER: Final = "The venue-agent authors"
HELP_URL: Final = os.environ.get("HELP_URL", "")
PROGRAM: Final = "venue-agent.exe"
FOLDER: Final = "venue-agent"
ARCHITECTURE: Final = "amd64"
SETUP: Final = "windows-setup"
"""The first argument with which the actions run the program (packaging/entry.py)."""
SETUP_LOG: Final = "venue-agent-setup.log"
"""The file in C:\\Windows\\Logs to which the program writes the output of the actions."""
UPGRADE_CODE: Final = uuid.UUID("6e1f3f52-5b0e-4c6f-9d7a-2c0a3a0f7b41")
"""Identifies the product in all versions. It must never change."""
LANGUAGE: Final = "1033"
FILES: Final = "files"
"""The directory of the program, as wixl sees it."""
EXE, CONTINUE, ROLLBACK, DEFERRED, AS_SYSTEM, HIDE_TARGET = 18, 0x40, 0x100, 0x400, 0x800, 0x2000
"""The type of a custom action that runs an installed program, and flags that are added to the type.
Source: Windows Installer, "Summary List of All Custom Action Types"."""
_SERVICE_KEY: Final = r"SYSTEM\CurrentControlSet\Services\venue-agent"
_OLDEST: Final = 315_532_800  # 1980-01-01, the earliest time that a cabinet can store


@dataclass(frozen=True, slots=True)
class Action:
    """A custom action that runs the installed program as SYSTEM.

    Args:
        position: its place in the sequence `InstallExecuteSequence`.
        condition: the condition of Windows Installer under which the action runs.
        flags: flags of this action only. All actions also have DEFERRED and AS_SYSTEM.
        arguments: the arguments of `venue-agent.exe windows-setup`.
    """

    name: str
    position: int
    condition: str
    arguments: str
    flags: int = 0

    @property
    def type(self) -> int:
        return EXE | DEFERRED | AS_SYSTEM | self.flags

    @property
    def target(self) -> str:
        return f"{SETUP} {self.arguments}"


PUBLIC_PROPERTIES: Final = ("API_KEY_FILE", "BASE_URL", "LOCATION_ID", "PURGE")
"""The properties that administrators pass."""
OPTIONS: Final = (
    '--base-url "[BASE_URL]" --location "[LOCATION_ID]" --api-key-file "[API_KEY_FILE]"'
)
IS_UNINSTALL: Final = 'REMOVE="ALL" AND NOT UPGRADINGPRODUCTCODE'
IS_FIRST: Final = "BASE_URL AND NOT REMOVE AND NOT SERVICE_EXISTS"
ACTIONS: Final = (
    # Before files are removed. Rollback actions run in the reverse order, after the rollback of the
    # files: RestoreService registers and starts the previous program again.
    Action("RestoreService", 1810, "Installed AND SERVICE_EXISTS", "install", ROLLBACK | CONTINUE),
    Action("StopService", 1820, "Installed AND SERVICE_EXISTS", "stop", CONTINUE),
    Action("RemoveService", 1830, f'{IS_UNINSTALL} AND PURGE<>"1"', "uninstall", CONTINUE),
    Action("PurgeState", 1840, f'{IS_UNINSTALL} AND PURGE="1"', "uninstall --purge"),
    # After files are installed. If a first installation fails, the configuration that it wrote is
    # deleted, because the next attempt would keep it.
    Action("UndoStart", 5610, "NOT REMOVE AND SERVICE_EXISTS", "stop", ROLLBACK | CONTINUE),
    Action("UndoService", 5620, f"{IS_FIRST} AND CONFIG_EXISTS", "undo", ROLLBACK | CONTINUE),
    Action(
        "UndoConfiguration", 5630, f"{IS_FIRST} AND NOT CONFIG_EXISTS", "undo --purge",
        ROLLBACK | CONTINUE,
    ),
    Action("Configure", 5640, "BASE_URL AND NOT REMOVE", f"install {OPTIONS}", HIDE_TARGET),
    Action("StartAgain", 5650, "SERVICE_EXISTS AND NOT BASE_URL AND NOT REMOVE", "install"),
)  # fmt: skip
"""The actions with which the package manages the service. The package also has a `ServiceControl`
entry. Because of this entry, Windows Installer does not ask the user to close the program, and can
stop and delete the service even if the program is damaged.
"""
STANDARD_ACTIONS: Final = (
    ("FindRelatedProducts", "", 25), ("AppSearch", "", 50), ("LaunchConditions", "", 100),
    ("ValidateProductID", "", 700), ("CostInitialize", "", 800), ("FileCost", "", 900),
    ("CostFinalize", "", 1000), ("InstallValidate", "", 1400), ("InstallInitialize", "", 1500),
    # In the transaction: if the new version fails, the previous one is restored.
    ("RemoveExistingProducts", "", 1510),
    ("ProcessComponents", "", 1600), ("UnpublishFeatures", "", 1800),
    ("StopServices", "", 1900), ("DeleteServices", "NOT UPGRADINGPRODUCTCODE", 2000),
    ("RemoveFiles", "", 3500), ("InstallFiles", "", 4000),
    ("RegisterUser", "", 6000), ("RegisterProduct", "", 6100), ("PublishFeatures", "", 6300),
    ("PublishProduct", "", 6400), ("InstallFinalize", "", 6600),
)  # fmt: skip
"""The standard actions of an installation: name, condition and place in the sequence."""
UI_ACTIONS: Final = (
    ("FindRelatedProducts", "", 25), ("LaunchConditions", "", 100),
    ("ValidateProductID", "", 700), ("CostInitialize", "", 800), ("FileCost", "", 900),
    ("CostFinalize", "", 1000), ("ExecuteAction", "", 1300),
)  # fmt: skip
"""The standard actions that run before an installation with a user interface.

Each has a name, a condition and a place in the sequence.
"""
ALL_OR_NONE: Final = (
    "(BASE_URL AND LOCATION_ID AND API_KEY_FILE) OR NOT (BASE_URL OR LOCATION_ID OR API_KEY_FILE)"
)
CONDITIONS: Final = (
    ("Privileged", "Installing the venue agent needs an administrator. Nothing was changed."),
    (
        f"Installed OR {ALL_OR_NONE}",
        "Pass BASE_URL, LOCATION_ID and API_KEY_FILE together, or none to install only the files.",
    ),
    ("NOT NEWER_VERSION", "A newer version of the venue agent is already installed."),
)
"""The conditions of an installation, each with the message that is shown if it is false."""
ERRORS: Final = (
    # The default message for a program that returned an error does not name the reason.
    (
        1722,
        f"The venue agent cannot be configured or started. See the end of [LOGFOLDER]{SETUP_LOG}",
    ),
)


def product_code(version: str) -> uuid.UUID:
    """Return the identifier of a version."""
    return uuid.uuid5(UPGRADE_CODE, version)


def braced(value: uuid.UUID) -> str:
    return f"{{{value}}}".upper()


def numeric_version(version: str) -> str:
    """Return the three numbers with which a version begins. Windows Installer compares only these.

    Raises ValueError if there are none.
    """
    match = re.match(r"\d{1,3}\.\d{1,3}\.\d{1,5}", version)
    if match is None:
        raise ValueError(f"Windows Installer cannot compare the version {version!r}")
    return match.group()


def file_id(relative: Path) -> str:
    """Return the identifier of a file of the package."""
    if relative == Path(PROGRAM):
        return "program"
    return "f" + hashlib.sha256(relative.as_posix().encode()).hexdigest()[:24]


def source(onedir: Path, version: str) -> str:
    """Return the input of wixl: product, directories, files and properties."""
    root = ET.Element("Wix", xmlns="http://schemas.microsoft.com/wix/2006/wi")
    product = ET.SubElement(
        root, "Product", Id=str(product_code(version)), UpgradeCode=str(UPGRADE_CODE).upper(),
        Name=NAME, Version=numeric_version(version), Manufacturer=PUBLISHER, Language=LANGUAGE,
        Codepage="1252",
    )  # fmt: skip
    ET.SubElement(
        product, "Package", InstallerVersion="500", Compressed="yes", InstallScope="perMachine"
    )
    ET.SubElement(product, "Media", Id="1", Cabinet="files.cab", EmbedCab="yes")
    for name, value in properties().items():
        ET.SubElement(product, "Property", Id=name, Value=value)
    for condition, message in CONDITIONS:
        ET.SubElement(product, "Condition", Message=message).text = condition
    target = ET.SubElement(product, "Directory", Id="TARGETDIR", Name="SourceDir")
    programs = ET.SubElement(target, "Directory", Id="ProgramFiles64Folder")
    system = ET.SubElement(target, "Directory", Id="WindowsFolder")
    ET.SubElement(system, "Directory", Id="LOGFOLDER", Name="Logs")
    folder = ET.SubElement(programs, "Directory", Id="INSTALLFOLDER", Name=FOLDER)
    feature = ET.SubElement(product, "Feature", Id="Agent", Level="1", Title=NAME)
    for component in _components(onedir, onedir, folder):
        ET.SubElement(feature, "ComponentRef", Id=component)
    return ET.tostring(root, encoding="unicode")


def properties() -> dict[str, str]:
    """Return the properties of the package that do not depend on its version."""
    values = {
        "ARPNOMODIFY": "1",
        "ARPCOMMENTS": "Remote control and diagnostics of this machine.",
        "MSIFASTINSTALL": "1",  # no restore point of the system
        "MsiHiddenProperties": "API_KEY_FILE",
        # Replace every file. Otherwise Windows Installer would keep existing files that have a
        # version, because the package does not contain the versions of its files.
        "REINSTALLMODE": "amus",
        "SecureCustomProperties": ";".join((*PUBLIC_PROPERTIES, "NEWER_VERSION", "OLDER_VERSION")),
    }
    return values | ({"ARPHELPLINK": HELP_URL} if HELP_URL else {})


def _components(onedir: Path, folder: Path, element: ET.Element) -> Iterator[str]:
    """Add a component for each directory that has files, and yield its identifier.

    The id of a component depends on the names of its files, as Windows Installer requires.
    """
    files = sorted(path for path in folder.iterdir() if path.is_file())
    if files:
        names = "/".join(path.relative_to(onedir).as_posix() for path in files)
        digest = hashlib.sha256(names.encode()).hexdigest()[:24]
        component = ET.SubElement(
            element, "Component", Id=f"c{digest}", Guid=str(uuid.uuid5(UPGRADE_CODE, names)),
            Win64="yes",
        )  # fmt: skip
        key = onedir / PROGRAM if onedir == folder else files[0]
        for path in files:
            ET.SubElement(
                component, "File", Id=file_id(path.relative_to(onedir)), Name=path.name,
                Source=f"{FILES}/{path.relative_to(onedir).as_posix()}",
                KeyPath="yes" if path == key else "no",
            )  # fmt: skip
        if onedir == folder:
            ET.SubElement(
                component, "ServiceControl", Id="service", Name="venue-agent", Stop="both",
                Remove="uninstall", Wait="yes",
            )  # fmt: skip
        yield f"c{digest}"
    for child in sorted(path for path in folder.iterdir() if path.is_dir()):
        digest = hashlib.sha256(child.relative_to(onedir).as_posix().encode()).hexdigest()[:24]
        inner = ET.SubElement(element, "Directory", Id=f"d{digest}", Name=child.name)
        yield from _components(onedir, child, inner)


def tables(version: str) -> dict[str, str]:
    """Return the tables that wixl cannot write, in the text format of Windows Installer."""
    this_version = numeric_version(version)
    sequence = [*STANDARD_ACTIONS, *((a.name, a.condition, a.position) for a in ACTIONS)]
    return {
        "InstallExecuteSequence": _table(
            "InstallExecuteSequence", "Action s72 Condition S255 Sequence I2", 1,
            sorted(sequence, key=lambda row: row[2]),
        ),
        "InstallUISequence": _table(
            "InstallUISequence", "Action s72 Condition S255 Sequence I2", 1, UI_ACTIONS
        ),
        "CustomAction": _table(
            "CustomAction", "Action s72 Type i2 Source S72 Target S255 ExtendedType I4", 1,
            [(each.name, each.type, "program", each.target, "") for each in ACTIONS],
        ),
        "Error": _table("Error", "Error i2 Message L0", 1, ERRORS),
        "Upgrade": _table(
            "Upgrade",
            "UpgradeCode s38 VersionMin S20 VersionMax S20 Language S255 Attributes i4 Remove S255"
            " ActionProperty s72", 5,
            [
                # 0x200: up to and including this version. 2: only detect a newer version.
                (braced(UPGRADE_CODE), "", this_version, "", 0x200, "", "OLDER_VERSION"),
                (braced(UPGRADE_CODE), this_version, "", "", 2, "", "NEWER_VERSION"),
            ],
        ),
        "AppSearch": _table(
            "AppSearch", "Property s72 Signature_ s72", 2,
            [("CONFIG_EXISTS", "config"), ("SERVICE_EXISTS", "service")],
        ),
        "RegLocator": _table(
            "RegLocator", "Signature_ s72 Root i2 Key s255 Name S255 Type I2", 1,
            # In HKEY_LOCAL_MACHINE (2), a value (2) of the 64-bit registry (16).
            [("service", 2, _SERVICE_KEY, "ImagePath", 2 | 16)],
        ),
        "DrLocator": _table(
            "DrLocator", "Signature_ s72 Parent S72 Path S255 Depth I2", 3,
            [("config", "", rf"[CommonAppDataFolder]{FOLDER}", 0)],
        ),
        "Signature": _table(
            "Signature",
            "Signature s72 FileName s255 MinVersion S20 MaxVersion S20 MinSize I4 MaxSize I4"
            " MinDate I4 MaxDate I4 Languages S255", 1,
            [("config", "config.toml", "", "", "", "", "", "", "")],
        ),
    }  # fmt: skip


def summary(version: str, package: uuid.UUID, epoch: int) -> str:
    """Return the package's summary. Its time is ``epoch``, not the time of the build."""
    saved_at = time.strftime("%Y/%m/%d %H:%M:%S", time.gmtime(epoch))
    # The numbers are the properties of the "Summary Information Stream" of Windows Installer.
    rows = [
        (1, 1252), (2, "Installation Database"), (3, f"{NAME} {version}"), (4, PUBLISHER),
        (5, "Installer"), (6, "Installs the venue agent as a service."), (7, f"x64;{LANGUAGE}"),
        (9, braced(package)), (12, saved_at), (13, saved_at), (14, 500), (15, 2),
        (18, "wixl"), (19, 2),
    ]  # fmt: skip
    lines = [f"{number}\t{value}" for number, value in rows]
    heads = ("PropertyId\tValue", "i2\tl255", "_SummaryInformation\tPropertyId")
    return "\r\n".join((*heads, *lines, ""))


def _table(name: str, columns: str, key_count: int, rows: Sequence[tuple[str | int, ...]]) -> str:
    """Return a table. ``columns`` has the name and the type of each column.

    The first ``key_count`` columns are the primary key.
    """
    words = columns.split()
    names, types = words[::2], words[1::2]
    heads = ("\t".join(names), "\t".join(types), "\t".join((name, *names[:key_count])))
    return "\r\n".join((*heads, *("\t".join(map(str, row)) for row in rows), ""))


def build(onedir: Path, version: str, output: Path) -> Path:
    """Build the package, and return its path."""
    epoch = max(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), _OLDEST)
    msi = output.resolve() / f"venue-agent-{version}-{ARCHITECTURE}.msi"
    output.mkdir(parents=True, exist_ok=True)
    msi.unlink(missing_ok=True)
    environment = {**os.environ, "TZ": "UTC", "LC_ALL": "C.UTF-8"}
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        program = work / FILES
        # The cabinet contains the times of the files.
        shutil.copytree(onedir, program, copy_function=shutil.copyfile)
        sign(program / PROGRAM)
        for path in program.rglob("*"):
            os.utime(path, (epoch, epoch))
        (work / "product.wxs").write_text(source(program, version), encoding="utf-8")
        wixl = ("wixl", "--arch", "x64", "--output", str(msi), "product.wxs")
        subprocess.run(wixl, cwd=work, env=environment, check=True)
        package = uuid.uuid5(product_code(version), digest_of(program))
        imports: list[str] = []
        idt_tables = tables(version)
        idt_tables["_SummaryInformation"] = summary(version, package, epoch)
        for name, content in idt_tables.items():
            (work / f"{name}.idt").write_bytes(content.encode("cp1252"))
            imports += ("-i", str(work / f"{name}.idt"))
        subprocess.run(("msibuild", str(msi), *imports), env=environment, check=True)
    sign(msi)
    return msi


def sign(file: Path) -> None:
    """Sign a program or a package, if SIGN_OPTIONS contains options for `osslsigncode sign`."""
    options = shlex.split(os.environ.get("SIGN_OPTIONS", ""))
    if options:
        signed = file.with_suffix(".signed")
        command = ("osslsigncode", "sign", *options, "-h", "sha256", "-n", NAME)
        subprocess.run((*command, "-in", str(file), "-out", str(signed)), check=True)
        signed.replace(file)


def digest_of(onedir: Path) -> str:
    """Return a digest of the names and contents of all files."""
    digest = hashlib.sha256()
    for path in sorted(path for path in onedir.rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(onedir).as_posix()}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def main() -> int:
    onedir, version, output = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    if not (onedir / PROGRAM).is_file():
        sys.stderr.write(
            f"{onedir} has no {PROGRAM}. Build the program on Windows, and pass ONEDIR=DIRECTORY\n"
        )
        return 1
    tools = {"wixl": "wixl", "msibuild": "msitools"}
    if os.environ.get("SIGN_OPTIONS"):
        tools["osslsigncode"] = "osslsigncode"
    for tool, package in tools.items():
        if shutil.which(tool) is None:
            sys.stderr.write(f"{tool} is missing: install the package {package}\n")
            return 1
    sys.stdout.write(f"{build(onedir, version, output)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
