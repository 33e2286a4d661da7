"""Creates the results of fake programs."""

from subprocess import CompletedProcess


def completed(code: int, stdout: str = "", stderr: str = "") -> CompletedProcess[str]:
    return CompletedProcess((), code, stdout, stderr)
