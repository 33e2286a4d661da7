"""Creates the results of fake programs, such as systemctl and launchctl."""

from subprocess import CompletedProcess


def completed_process(code: int, stdout: str = "", stderr: str = "") -> CompletedProcess[str]:
    return CompletedProcess((), code, stdout, stderr)
