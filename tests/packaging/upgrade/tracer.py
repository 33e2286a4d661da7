"""Runs a command under ptrace(2), and stops it before a given change of the file system.

Such a change is called a step. Steps are the system calls that rename, link or delete files, create
or delete directories, or create symbolic links, and also execve(2). The creation of a file by
open(2) is not a step. The name of a step is the program, the call, the path, and how often all
processes of the command have made this call: ``mv rename /usr/bin/venue-agent #1``. The name is the
same each time the command runs. Two files connect the tracer with `tests.packaging.upgrade`, which
starts it. The tracer writes the file ``held`` when it has reached the step, and when the command
has ended. At the step, it waits for the file ``decision``, which names what to kill.

Usage: python -m tests.packaging.upgrade.tracer DIRECTORY [STEP] -- COMMAND
Without STEP, every step is written to DIRECTORY/steps.
"""

import collections
import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

# Requests of ptrace(2).
TRACEME, SYSCALL, SETOPTIONS, GET_SYSCALL_INFO = 0, 24, 0x4200, 0x420E
# TRACESYSGOOD, TRACEFORK, TRACEVFORK, TRACECLONE, TRACEEXEC and EXITKILL
OPTIONS: Final = 0x1 | 0x2 | 0x4 | 0x8 | 0x10 | 0x100000
SYSCALL_STOP: Final = signal.SIGTRAP | 0x80
ENTRY: Final = 1  # PTRACE_SYSCALL_INFO_ENTRY of ptrace(2)
WALL: Final = 0x40000000  # __WALL of waitpid(2)
PATH_MAX: Final = 4096
# Linux on x86-64: the number of a system call, its name, and the index of the argument with the
# path. Of the two paths of rename and link, this is the new one.
CHANGES: Final = {
    59: ("execve", 0), 82: ("rename", 1), 264: ("rename", 3), 316: ("rename", 3), 83: ("mkdir", 0),
    258: ("mkdir", 1), 84: ("rmdir", 0), 86: ("link", 1), 265: ("link", 3), 87: ("unlink", 0),
    263: ("unlink", 1), 88: ("symlink", 1), 266: ("symlink", 2),
}  # fmt: skip
HELD, DECISION, STEPS = "held", "decision", "steps"
POLL_EVERY_S: Final = 0.01


class SyscallInfo(ctypes.Structure):
    """struct ptrace_syscall_info of ptrace(2), at the entry of a system call."""

    _fields_ = (
        ("op", ctypes.c_uint8), ("pad", ctypes.c_uint8 * 3), ("arch", ctypes.c_uint32),
        ("instruction", ctypes.c_uint64), ("stack", ctypes.c_uint64),
        ("number", ctypes.c_uint64), ("arguments", ctypes.c_uint64 * 6),
    )  # fmt: skip


libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
libc.ptrace.restype = ctypes.c_long


class Tracer:
    def __init__(self, directory: Path, stop_at: str | None) -> None:
        self._directory = directory
        self._stop_at = stop_at
        self._counts: collections.Counter[str] = collections.Counter()
        self._pids: set[int] = set()
        self._steps: list[str] = []

    def run(self, command: list[str]) -> int:
        """Run the command, and return its exit code; 137 if it was killed."""
        main = os.fork()
        if main == 0:
            libc.ptrace(TRACEME, 0, None, None)
            os.kill(os.getpid(), signal.SIGSTOP)
            os.execvp(command[0], command)
        os.waitpid(main, 0)
        libc.ptrace(SETOPTIONS, main, None, OPTIONS)
        self._pids.add(main)
        self._resume(main)
        code = 137
        while self._pids:
            try:
                pid, status = os.waitpid(-1, WALL)
            except ChildProcessError:
                break
            if os.WIFSTOPPED(status):
                self._handle_stop(pid, status)
                continue
            self._pids.discard(pid)
            if pid == main and os.WIFEXITED(status):
                code = os.WEXITSTATUS(status)
        if self._stop_at is None:
            (self._directory / STEPS).write_text("".join(f"{step}\n" for step in self._steps))
        self._report(f"ended {code}")
        return code

    def _report(self, text: str) -> None:
        new = self._directory / f"{HELD}.new"
        new.write_text(text)
        new.rename(self._directory / HELD)

    def _wait_for_decision(self) -> str:
        file = self._directory / DECISION
        while not file.exists():
            time.sleep(POLL_EVERY_S)
        return file.read_text()

    def _handle_stop(self, pid: int, status: int) -> None:
        number = os.WSTOPSIG(status)
        is_new = pid not in self._pids
        self._pids.add(pid)
        if number == SYSCALL_STOP:
            self._handle_syscall(pid)
            self._resume(pid)
        elif status >> 16 or (is_new and number == signal.SIGSTOP):
            # ptrace caused the stop: for an event such as a fork, or at the start of a process.
            self._resume(pid)
        else:
            self._resume(pid, number)

    def _resume(self, pid: int, number: int = 0) -> None:
        libc.ptrace(SYSCALL, pid, None, number)

    def _handle_syscall(self, pid: int) -> None:
        info = SyscallInfo()
        size = libc.ptrace(GET_SYSCALL_INFO, pid, ctypes.sizeof(info), ctypes.addressof(info))
        if size <= 0 or info.op != ENTRY or info.number not in CHANGES:
            return
        name, argument = CHANGES[info.number]
        path = _text_at(pid, info.arguments[argument])
        program = _program_of(pid)
        step = f"{program} {name} {path}"
        self._counts[step] += 1
        step += f" #{self._counts[step]}"
        self._steps.append(step)
        if step == self._stop_at:
            self._report("held")
            decision = self._wait_for_decision()
            victims = {
                "kill-all": set(self._pids),
                "kill-one": {pid},
                "kill-script": {pid, *self._scripts_above(pid)},
            }.get(decision, set())
            for each in victims:
                os.kill(each, signal.SIGKILL)

    def _scripts_above(self, pid: int) -> Iterator[int]:
        """Yield the traced shells that run the process: its parent, the parent's parent, ..."""
        while (pid := _parent(pid)) in self._pids and _program_of(pid).startswith("sh:"):
            yield pid


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _program_of(pid: int) -> str:
    """Return the name of the program that the process runs, and of the script if it is a shell."""
    words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    script = next((word for word in words[1:3] if word.startswith(b"/")), b"")
    name = Path(words[0].decode(errors="replace")).name
    return f"{name}:{Path(script.decode()).name}" if name in {"sh", "dash"} else name


def _text_at(pid: int, address: int) -> str:
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        memory.seek(address)
        text = b""
        while b"\0" not in text and len(text) < PATH_MAX:
            # A string may end just before a page that is not mapped.
            part = memory.read(4096 - (address + len(text)) % 4096)
            if not part:
                break
            text += part
    return text.partition(b"\0")[0].decode(errors="replace")


def main() -> int:
    directory, *rest = sys.argv[1:]
    words, command = rest[: rest.index("--")], rest[rest.index("--") + 1 :]
    return Tracer(Path(directory), words[0] if words else None).run(command)


if __name__ == "__main__":
    sys.exit(main())
