"""Parsers of untrusted input raise only documented errors, for every input."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests import sizes
from tests.fuzz.ossfuzz import fuzzers
from tests.fuzz.targets import TARGETS, Target
from tests.time_limit import generous_time_limit

EXAMPLES = sizes.examples(40)


def feed(target: Target, data: bytes) -> None:
    """Parse ``data``, and ignore the parser's documented errors."""
    try:
        target.parse(data)
    except target.errors:
        return


@st.composite
def _spoiled(draw: st.DrawFn, seeds: tuple[bytes, ...]) -> bytes:
    """Draw a seed with changed, removed or inserted bytes: almost valid input."""
    data = bytearray(draw(st.sampled_from(seeds)))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data)))
        length = draw(st.integers(0, 12))
        data[at : at + length] = draw(st.binary(max_size=12) | st.sampled_from(_AWKWARD))
    return bytes(data)


_AWKWARD = (
    b"\xff\xff\xff\xff", b"\x00" * 8, b"[" * 2000, b"\xc0\x0c", b"9" * 400, b"\r\n\r\n",
    b"\xed\xa0\x80", b"NaN", b"1e999", "\N{ARABIC-INDIC DIGIT NINE}".encode(), b"%00", b'"\\ud800"',
)  # fmt: skip


@pytest.mark.parametrize("name", TARGETS)
def test_parser_raises_only_documented_errors(name: str) -> None:
    target = TARGETS[name]
    seeds: SearchStrategy[bytes] = _spoiled(target.seeds)

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(seeds | st.binary(max_size=300))
    def run(data: bytes) -> None:
        feed(target, data)

    with generous_time_limit():
        run()


@pytest.mark.parametrize("name", TARGETS)
def test_fuzz_seeds_raise_only_documented_errors(name: str) -> None:
    for seed in TARGETS[name].seeds:
        feed(TARGETS[name], seed)


def test_oss_fuzz_gets_a_program_and_the_seeds_of_each_target(tmp_path: Path) -> None:
    fuzzers.write(tmp_path / "programs", tmp_path / "out")
    assert len(list((tmp_path / "programs").glob("fuzz_*.py"))) == len(TARGETS)
    archives = list((tmp_path / "out").glob("fuzz_*_seed_corpus.zip"))
    assert len(archives) == len(TARGETS)
    assert sum(archive.stat().st_size for archive in archives) <= 200 * 1024
    for program in (tmp_path / "programs").iterdir():
        compile(program.read_text(), program.name, "exec")
