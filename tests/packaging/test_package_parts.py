"""Tests the parts of the packages that exist without a build: scripts, manual, bill of materials
and entry point.
"""

import compileall
import datetime
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from agent import __version__
from agent.cli.main import VERBS
from tests.packaging import program_cases
from tests.packaging.excluded_imports import settings_of
from tests.packaging.scripts import PACKAGING, packaging_script
from tests.packaging.service.commands_of_doc import documented_commands
from tests.packaging.verify_idle import growth_problem
from tests.paths import ROOT
from tests.sizes import large_except

NOT_SHIPPED = {
    "agent-protocol.md", "application-fields.md", "controlplane.md", "fleet-findings.md",
    "repositories.md", "service-install.md",
}  # fmt: skip
"""Documents that only developers and operators of the service need."""


@pytest.mark.parametrize("program", ["venue-agent", "venue-control"])
@pytest.mark.parametrize("name", ["postinst", "prerm", "postrm"])
def test_maintainer_scripts_are_plain_shell(program: str, name: str) -> None:
    script = PACKAGING / "deb" / program / name
    assert script.read_text().startswith("#!/bin/sh\nset -e\n")
    subprocess.run(("sh", "-n", str(script)), check=True)


@pytest.mark.parametrize("name", ["preinst", "postrm"])
def test_preinst_and_postrm_contain_the_upgrade_script(name: str, tmp_path: Path) -> None:
    build = packaging_script("deb/build_deb.py")
    text = build.maintainer_script(PACKAGING / "deb/venue-agent" / name)
    assert "select_version()" in text
    (tmp_path / name).write_text(text)
    subprocess.run(("sh", "-n", str(tmp_path / name)), check=True)


def test_the_agents_package_lets_the_script_for_upgrades_select_the_version(tmp_path: Path) -> None:
    (tmp_path / "usr/bin").mkdir(parents=True)
    (tmp_path / "usr/bin/venue-agent").symlink_to("../lib/venue-agent/venue-agent")
    packaging_script("deb/build_deb.py").add_upgrades(tmp_path)
    link = (tmp_path / "usr/bin/venue-agent").readlink()
    assert str(link) == "../lib/venue-agent.current/venue-agent"
    assert (tmp_path / "usr/libexec/venue-agent-upgrade").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "usr/lib/systemd/system/venue-agent-upgrade.service").is_file()


def test_the_manual_names_every_verb_and_an_option_of_service_install() -> None:
    page = packaging_script("manual.py").man_page()
    for verb in VERBS:
        assert re.search(rf"^\.B {verb}", page, re.MULTILINE), verb
    assert "service install" in page
    assert r"\-\-api\-key\-file" in page
    assert all(line == line.rstrip() for line in page.splitlines())


def test_the_manual_has_examples_and_environment_variables() -> None:
    page = packaging_script("manual.py").man_page()
    sections = re.findall(r"^\.SH (.+)$", page, re.MULTILINE)
    assert sections[-5:] == ["EXAMPLES", "ENVIRONMENT", "FILES", "EXIT STATUS", "SEE ALSO"]
    commands = re.findall(r"^\.EX\n(.*)\n\.EE$", page, re.MULTILINE)
    verbs = set(re.findall(r"venue\\-agent (\w+)", "\n".join(commands)))
    assert verbs
    assert verbs <= set(VERBS)


def test_the_debian_package_carries_the_documents_without_pictures(tmp_path: Path) -> None:
    (tmp_path / "onedir").mkdir()
    for name in ("venue-agent.1", "venue-agent.bash"):
        (tmp_path / name).touch()
    build = packaging_script("deb/build_deb.py")
    build.lay_out(tmp_path / "tree", tmp_path / "onedir", tmp_path)
    docs = tmp_path / "tree/usr/share/doc/venue-agent"
    shipped = {path.name: path for path in docs.glob("*.md")}
    assert {"install.md", "privacy.md", "troubleshooting.md"} <= shipped.keys()
    for path in shipped.values():
        text = path.read_text()
        assert "images/" not in text
        links = re.findall(r"\]\((\w[\w-]*\.md)[)#]", text)
        assert set(links) - shipped.keys() <= NOT_SHIPPED, path.name


def test_the_services_package_has_unit_options_and_documents(tmp_path: Path) -> None:
    (tmp_path / "onedir").mkdir()
    for name in ("venue-control.1", "venue-control.bash"):
        (tmp_path / name).touch()
    build = packaging_script("deb/build_deb.py")
    program = build.PROGRAMS["venue-control"]
    tree = tmp_path / "tree"
    build.lay_out(tree, tmp_path / "onedir", tmp_path, program)
    files = {str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file()}
    assert {
        "usr/lib/systemd/system/venue-control.service", "usr/lib/sysusers.d/venue-control.conf",
        "etc/venue-control/serve.conf", "usr/share/doc/venue-control/service-install.md",
        "usr/share/doc/venue-control/nginx.conf", "usr/share/doc/venue-control/Caddyfile",
    } <= files  # fmt: skip
    assert not [name for name in files if "venue-agent" in name]


def test_the_services_manual_has_verbs_with_subcommands_and_no_placeholder() -> None:
    manual = packaging_script("manual.py")
    page = manual.man_page("venue-control")
    for words in ("serve", "keys create", "service install", "backup", "database copy"):
        assert re.search(rf"^\.B {words}$", page, re.MULTILINE), words
    assert "%(" not in page
    assert "_venue_control venue-control" in manual.bash_completion("venue-control")


def test_documented_postgresql_setup_has_five_commands_and_all_blocks_exist() -> None:
    commands = documented_commands()
    assert commands.keys() == {
        "postgresql", "move", "backup", "restore", "backup-postgresql", "restore-postgresql",
        "setup", "nginx", "caddy", "container", "container-backup", "container-upgrade",
    }  # fmt: skip
    assert len(commands["postgresql"]) == 5
    for proxy in ("nginx", "caddy"):
        assert '"--origin https://$NAME" >> /etc/venue-control/serve.conf' in commands[proxy][-2]
    # The user postgres cannot enter root's home directory. `runuser -u` starts the programs of
    # PostgreSQL there, and they print an error. `runuser -l` changes the directory.
    assert not [line for lines in commands.values() for line in lines if "-u postgres" in line]


def test_bash_completion_completes_verbs_and_options(tmp_path: Path) -> None:
    script = tmp_path / "completion"
    script.write_text(packaging_script("manual.py").bash_completion())

    def complete(*words: str) -> list[str]:
        array = " ".join(f"'{word}'" for word in words)
        program = (
            f"source {script}; COMP_WORDS=({array}); COMP_CWORD={len(words) - 1};"
            ' _venue_agent; printf "%s\\n" "${COMPREPLY[@]}"'
        )
        done = subprocess.run(("bash", "-c", program), capture_output=True, text=True, check=True)
        return done.stdout.split()

    assert complete("venue-agent", "serv") == ["service"]
    assert complete("venue-agent", "service", "un") == ["uninstall"]
    assert complete("venue-agent", "service", "install", "--lo") == ["--location"]
    assert complete("venue-agent", "collect", "net") == ["network"]


def test_the_bill_of_materials_is_the_same_for_the_same_input(tmp_path: Path) -> None:
    sbom = packaging_script("sbom.py")
    library = tmp_path / "_internal/libssl.so.3"
    library.parent.mkdir()
    library.write_bytes(b"\x7fELF")
    import pydantic_core  # any installed distribution will do

    distributions = sbom.bundled_distributions(frozenset({Path(pydantic_core.__file__)}))
    assert [each.name for each in distributions] == ["pydantic_core"]
    first = sbom.bill(distributions, tmp_path, __version__)
    assert first == sbom.bill(distributions, tmp_path, __version__)
    names = {component["name"] for component in first["components"]}
    assert names == {"pydantic_core", "cpython", "libssl.so.3"}
    library.write_bytes(b"\x7fELF another")
    assert sbom.bill(distributions, tmp_path, __version__)["serialNumber"] != first["serialNumber"]


def test_the_bill_of_materials_has_the_vendored_npm_package(tmp_path: Path) -> None:
    files = ROOT / "controlplane/web/openapi/viewer_files"
    target = tmp_path / "_internal/controlplane/web/openapi/viewer_files"
    target.mkdir(parents=True)
    (target / "README.md").write_bytes((files / "README.md").read_bytes())
    bill = packaging_script("sbom.py").bill((), tmp_path, __version__)
    npm = [each["purl"] for each in bill["components"] if each["bom-ref"].startswith("pkg:npm/")]
    assert npm == ["pkg:npm/swagger-ui-dist@5.35.0"]


def test_the_package_depends_on_the_glibc_version_of_its_newest_symbol(tmp_path: Path) -> None:
    newest = packaging_script("deb/build_deb.py").newest_glibc
    (tmp_path / "a.so").write_bytes(b"\x7fELF..GLIBC_2.9\0GLIBC_2.34\0")
    (tmp_path / "b.so").write_bytes(b"\x7fELF..GLIBC_2.4\0")
    (tmp_path / "c.txt").write_bytes(b"GLIBC_2.99")
    assert newest(tmp_path) == "2.34"


NOT_REACHED = {
    "attrs": "mcp.client, which checks the results of tools: the service is no client",
    "click": "the command line of httpx2",
    "dotenv": "an option of uvicorn that the service does not set",
    "markdown_it": "Markdown in rich, which nothing prints",
    "psycopg2": "another driver of PostgreSQL",
    "pydantic.v1": "classes with the methods of pydantic 1",
    "pygments": "colored source code and tracebacks in rich, and the command line of httpx2",
    "trio": "another event loop",
}
"""Excluded modules that libraries import inside functions, each with the purpose of the import."""


@pytest.mark.parametrize("program", large_except(["venue-agent"], ["venue-agent", "venue-control"]))
def test_no_package_leaves_out_a_module_that_its_program_imports(program: str) -> None:
    words = (sys.executable, "-W", "ignore", "-m", "tests.packaging.excluded_imports", program)
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=ROOT)
    lines = done.stdout.splitlines()
    assert lines, "at least rich imports something that is left out"
    assert [line for line in lines if line.partition(": ")[2] not in NOT_REACHED] == []


@pytest.mark.parametrize("program", ["venue-agent", "venue-control"])
def test_anyio_in_a_package_imports_its_modules_only_when_they_are_used(
    program: str, tmp_path: Path
) -> None:
    """If anyio cannot read its own source code, it imports all its modules at the start.

    A package contains byte code. Of the source files of anyio, it contains only those that
    `program.spec` adds.
    """
    sources = find_spec("anyio").submodule_search_locations[0]  # type: ignore[union-attr, index]
    shutil.copytree(sources, tmp_path / "anyio", ignore=shutil.ignore_patterns("__pycache__"))
    compileall.compile_dir(tmp_path, legacy=True)
    for source in tmp_path.rglob("*.py"):
        source.unlink()
    for source, folder in settings_of(program)["datas"]:
        if folder.startswith("anyio"):
            shutil.copy(source, tmp_path / folder)
    words = (sys.executable, "-c", "import anyio.abc, sys; print(*sys.modules)")
    done = subprocess.run(
        words, capture_output=True, text=True, check=True, env={"PYTHONPATH": str(tmp_path)}
    )
    assert "anyio.abc" in done.stdout.split()
    assert "anyio._core._fileio" not in done.stdout.split()


def test_every_command_and_option_has_a_case_in_the_verification_of_the_packages() -> None:
    assert program_cases.missing() == []
    stories_without_uoms = tuple(
        replace(story, steps=tuple(step for step in story.steps if "catalog uoms" not in str(step)))
        for story in program_cases.STORIES
    )
    assert program_cases.missing(stories_without_uoms) == ["venue-control catalog uoms: no case"]


def test_the_windows_package_has_the_modules_that_are_imported_by_name() -> None:
    pattern = re.compile(r'import_module\("((?:win32|pywin|servicemanager)\w*)"\)')
    sources = (ROOT / "agent/adapters/service_manager/windows").glob("*.py")
    modules = {name for source in sources for name in pattern.findall(source.read_text())}
    assert "servicemanager" in modules
    spec = (PACKAGING / "program.spec").read_text()
    assert {name for name in modules if f'"{name}"' not in spec} == set()


def test_the_windows_zip_is_the_same_for_the_same_input(tmp_path: Path) -> None:
    pack = packaging_script("windows/build_zip.py").pack
    onedir = tmp_path / "onedir"
    (onedir / "_internal").mkdir(parents=True)
    (onedir / "venue-agent.exe").write_bytes(b"MZ")
    (onedir / "_internal/a.dll").write_bytes(b"dll")
    pack(onedir, tmp_path / "1.zip")
    (onedir / "venue-agent.exe").touch()
    pack(onedir, tmp_path / "2.zip")
    assert (tmp_path / "1.zip").read_bytes() == (tmp_path / "2.zip").read_bytes()
    assert zipfile.ZipFile(tmp_path / "1.zip").namelist() == [
        "venue-agent/_internal/a.dll", "venue-agent/venue-agent.exe",
    ]  # fmt: skip


CSV = """\
Registry,Assignment,Organization Name,Organization Address
MA-L,0026AB,Seiko Epson Corporation,"Nagano, JP"
MA-L,480BB2,IEEE Registration Authority,US
MA-M,480BB2A,"Xiamen Rongta Technology Co.,Ltd.",CN
MA-L,000000,XEROX CORPORATION,US
MA-L,AABBCC,Private,
"""
MANUF = """\
# Wireshark's form
00:26:AB         \tSeikoEpson  \tSeiko Epson Corporation
48:0B:B2:A0/28   \tXiamenRongta\tXiamen Rongta Technology Co.,Ltd.
"""


def test_the_registry_of_makers_is_packed_equally_from_both_file_formats(tmp_path: Path) -> None:
    makers = packaging_script("makers.py")
    packed = []
    for number, text in enumerate((CSV, MANUF)):
        path = tmp_path / f"list-{number}"
        path.write_text(text)
        blocks = makers.without_parents(makers.blocks_of(path))
        assert blocks == {"0026AB": "Seiko Epson", "480BB2A": "Xiamen Rongta Technology"}
        packed.append(makers.pack(datetime.date(2026, 10, 24), blocks))
    assert packed[0] == packed[1]
    with pytest.raises(ValueError, match="not blocks of the registry: 12345"):
        makers.without_parents([("12345", "X")])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Hangzhou Hikvision Digital Technology Co.,Ltd.", "Hangzhou Hikvision Digital Technology"),
        ("HP Inc.", "HP"),
        ("Bender GmbH &amp; Co.KG", "Bender"),
        ("BROTHER INDUSTRIES, LTD.", "Brother Industries"),
        ("Zebra Technologies Inc.", "Zebra Technologies"),
        ("Custom S.p.A.", "Custom"),
        ("SPIE Dürr Austria GmbH", "SPIE Dürr Austria"),
        ("AVM Audiovisuelles Marketing und Computersysteme GmbH",
         "AVM Audiovisuelles Marketing und Computersysteme"),
    ],
)  # fmt: skip
def test_manufacturer_name_has_no_legal_form(name: str, expected: str) -> None:
    assert packaging_script("makers.py").display_name(name) == expected


def test_the_registry_of_makers_is_small_and_in_every_package() -> None:
    data = ROOT / "agent/presentation/hosts/makers.bin"
    assert data.stat().st_size <= 1.5 * 1024 * 1024
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    targets = project["tool"]["hatch"]["build"]["targets"]
    assert "agent" in targets["wheel"]["packages"]
    assert "agent" in targets["sdist"]["include"]
    # The onedir package and the .deb include every file of agent/ that is not source code.
    spec = (PACKAGING / "program.spec").read_text()
    assert '"entry.py", ("agent", "collectors"), ("agent",)' in spec
    assert '(ROOT / folder).rglob("*")' in spec
    excluded = re.search(r"path\.suffix not in \{(.*)\}", spec)
    assert excluded is not None
    assert data.suffix not in excluded[1]


def entry(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        (sys.executable, str(PACKAGING / "entry.py"), *words),
        input=stdin, capture_output=True, text=True, check=False, env={"PYTHONPATH": str(ROOT)},
    )  # fmt: skip


def test_the_packaged_entry_runs_the_agent_or_a_collector() -> None:
    assert entry("--version").stdout == f"venue-agent {__version__}\n"
    unreadable = entry("collector", "application", stdin="not a job\n")
    assert unreadable.returncode == 2
    assert "the job cannot be read" in unreadable.stderr
    assert entry("collector", "nonsense").returncode == 2


def test_demo_command_of_the_package_names_its_replacement() -> None:
    done = entry("demo")
    assert done.returncode == 2
    usage, error = done.stderr.splitlines()
    assert usage.startswith("usage: ")
    assert error.endswith("; the demo is `venue-control demo` now")


@pytest.mark.parametrize(
    ("pss_mib", "baseline_mib", "words"),
    [
        (35.0, 35.0, None),
        (30.0, 35.0, None),
        (36.0, 35.0, None),
        (36.1, 35.0, "3.1 % more memory than the baseline of 35.0 MiB"),
        (35.0, None, "no baseline for"),
    ],
)
def test_growth_of_the_idle_memory_above_three_percent_is_a_problem(
    pss_mib: float, baseline_mib: float | None, words: str | None
) -> None:
    problem = growth_problem(pss_mib, baseline_mib)
    assert problem is None if words is None else words in str(problem)
