"""`python -m tests.fuzz [--seconds N] [TARGET ...]`: fuzz the parsers with atheris.

Each target runs in its own process, because libFuzzer ends the process. The inputs of a target are
stored in the directory build/fuzz/TARGET. Each input that broke a parser is stored in a file whose
path begins with build/fuzz/TARGET-. The exit code is 1 if a parser broke.
"""

import argparse
import subprocess
import sys
from pathlib import Path

CORPUS = Path("build/fuzz")


def fuzz(name: str, seconds: int) -> None:
    """Fuzz one target in this process; never returns."""
    import atheris  # large, and not one of the development packages

    with atheris.instrument_imports(include=["agent", "collectors"]):
        from tests.fuzz.targets import TARGETS

    target, corpus = TARGETS[name], CORPUS / name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(target.seeds):
        (corpus / f"seed-{number}").write_bytes(seed)

    def one_input(data: bytes) -> None:
        try:
            target.parse(data)
        except target.errors:
            return

    words = [sys.argv[0], str(corpus), f"-max_total_time={seconds}", "-timeout=5",
             "-rss_limit_mb=1024", f"-artifact_prefix={CORPUS}/{name}-", "-print_final_stats=1",
             "-verbosity=0"]  # fmt: skip
    atheris.Setup(words, one_input)
    atheris.Fuzz()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seconds", type=int, default=20, help="for each target")
    # This script starts itself with --here, to fuzz one target in a child process.
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("targets", nargs="*")
    options = parser.parse_args()
    if options.here:
        fuzz(options.targets[0], options.seconds)
    from tests.fuzz.targets import TARGETS  # not at the top: a child imports atheris first

    broken = []
    for name in options.targets or TARGETS:
        words = [
            sys.executable,
            "-m",
            "tests.fuzz",
            "--here",
            "--seconds",
            str(options.seconds),
            name,
        ]
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False)
        stats = [line for line in done.stderr.splitlines() if "number_of_executed" in line]
        print(
            f"{name:20} {'ok' if done.returncode == 0 else 'BROKEN'} {' '.join(stats)}", flush=True
        )
        if done.returncode:
            broken.append(name)
            print(done.stdout[-500:], done.stderr[-3000:])
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
