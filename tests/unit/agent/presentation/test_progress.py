import io

from rich.console import Console

from agent.presentation.progress import STEPS_MAX, RunProgress


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def console(*, is_terminal: bool, width: int = 80) -> Console:
    return Console(
        file=io.StringIO(),
        width=width,
        force_terminal=is_terminal,
        force_interactive=is_terminal,
        color_system=None,
        legacy_windows=False,
    )


def output_of(target: Console) -> str:
    assert isinstance(target.file, io.StringIO)
    return target.file.getvalue()


def test_without_a_terminal_one_line_is_printed_for_each_finished_step() -> None:
    clock, output = Clock(), console(is_terminal=False)
    with RunProgress(output, clock) as progress:
        progress.update("scan", 0, 254)
        progress.update("mdns", 3)
        clock.now_s = 1.5
        progress.update("scan", 254, 254)
        assert output_of(output) == "scan: 254 of 254 in 1.5 s\n"
        progress.update("scan", 254, 254)
        progress.update("mdns", 14)
        clock.now_s = 3.0
    assert output_of(output) == "scan: 254 of 254 in 1.5 s\nmdns: 14 in 3 s\n"


def test_an_empty_step_is_finished_at_once() -> None:
    output = console(is_terminal=False)
    with RunProgress(output, Clock()) as progress:
        progress.update("printers", 0, 0)
    assert output_of(output) == "printers: 0 of 0 in 0 s\n"


def test_the_progress_of_an_interrupted_step_is_printed() -> None:
    output = console(is_terminal=False)
    with RunProgress(output, Clock()) as progress:
        progress.update("scan", 12, 254)
    assert output_of(output) == "scan: 12 of 254 in 0 s\n"


def test_each_step_has_a_bar_on_a_terminal() -> None:
    output = console(is_terminal=True)
    with RunProgress(output) as progress:
        progress.update("scan", 12, 254)
        progress.update("mdns", 3)
        progress.update("scan", 254, 254)
    last = output_of(output).rpartition("addresses scanned")[2]
    assert "━" in last
    assert "254 of 254" in last
    assert "announcements received" in last


def displayed_lines(progress: RunProgress, output: Console) -> list[str]:
    """Return the current content of the terminal."""
    other_console = console(is_terminal=False, width=output.width)
    other_console.print(progress._bars.get_renderable())
    return [line.strip() for line in output_of(other_console).splitlines()]


def test_progress_is_animated_before_between_and_during_steps() -> None:
    clock, output = Clock(), console(is_terminal=True)
    with RunProgress(output, clock, title="network report") as progress:
        clock.now_s = 0.7
        (first,) = displayed_lines(progress, output)
        progress.update("scan", 12, 254)
        clock.now_s = 1.9
        during = displayed_lines(progress, output)
        progress.update("scan", 254, 254)
        clock.now_s = 4.2
        between = displayed_lines(progress, output)
    assert "network report" in first
    assert first.endswith("0.7 s")
    assert during[0].endswith("1.9 s")
    assert during[1].endswith("12 of 254  1.2 s")
    assert between[0].endswith("4.2 s")
    assert between[1].startswith("✓ addresses scanned")
    assert between[1].endswith("254 of 254  1.2 s"), "the time of a finished step must not grow"


def test_a_long_wait_is_reported_in_minutes() -> None:
    clock, output = Clock(), console(is_terminal=True)
    with RunProgress(output, clock, title="network report") as progress:
        clock.now_s = 75.3
        assert displayed_lines(progress, output)[0].endswith("1 min 15 s")


def test_progress_fits_fifty_columns() -> None:
    output = console(is_terminal=True, width=50)
    with RunProgress(output, Clock(), title="network report") as progress:
        for step in ("interfaces", "scan", "mdns", "enrichment", "sources"):
            progress.update(step, 1000, 1024)
        lines = displayed_lines(progress, output)
    assert len(lines) == 6
    assert all(len(line) <= 50 for line in lines)
    assert all("1000 of 1024" in line and line.endswith("0.0 s") for line in lines[1:])


def test_a_hostile_step_name_is_plain_text() -> None:
    for is_terminal in (False, True):
        output = console(is_terminal=is_terminal)
        with RunProgress(output, Clock()) as progress:
            progress.update("\x07[bold]s\u202e", 1, 1)
        assert "[bold]s" in output_of(output)
        assert not set(output_of(output)) & {"\x07", "\u202e"}


def test_steps_are_bounded() -> None:
    output = console(is_terminal=False)
    with RunProgress(output, Clock()) as progress:
        for number in range(STEPS_MAX + 10):
            progress.update(f"step {number}", 1, 1)
    assert output_of(output).count("\n") == STEPS_MAX
