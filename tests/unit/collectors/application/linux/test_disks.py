"""Mounts, their free space, and the health of the drives."""

import contextlib
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.application.deadline import Deadline
from collectors.application.linux import drives, mounts, smart
from collectors.application.readers import disk_space
from collectors.application.readers.disk_space import Answers, Mount, Space
from collectors.application.source import Unreadable
from collectors.application.system_bus import Objects, parse_objects
from collectors.shared.text import decode
from tests.sizes import examples
from tests.unit.collectors.application.fixtures import by_key, fixture, values, write_files

DEADLINE = Deadline.after(3600)


def test_each_file_system_with_data_is_listed_once() -> None:
    result = mounts.data_mounts(mounts.parse_mountinfo(decode(fixture("linux/mountinfo.txt"))))
    assert {mount.path: (mount.file_system, mount.read_only, mount.remote) for mount in result} == {
        "/": ("ext4", False, False),
        "/boot/efi": ("vfat", True, False),
        "/media/anna/USB STICK": ("vfat", False, False),
        "/mnt/nfs": ("nfs4", False, True),
        "/mnt/ssh": ("fuse.sshfs", False, True),
        "/srv/share": ("cifs", False, True),
    }


def test_a_read_only_mount_of_a_writable_disk_is_not_reported_as_read_only() -> None:
    line = "22 1 8:2 / / ro,relatime shared:1 - ext4 /dev/sda2 rw,errors=remount-ro"
    ((_, _, mount),) = mounts.parse_mountinfo(line)
    assert not mount.read_only


ROOT = "22 1 8:2 / / rw - ext4 /dev/sda2 rw"


@pytest.mark.parametrize(
    ("line", "is_listed"),
    [
        ("50 22 0:60 / /tmp/.mount_TillX ro - fuse.Till.AppImage Till ro,user_id=0", False),
        ("50 22 0:60 / /home/anna/cloud rw - fuse.rclone cloud: rw,user_id=1000", False),
        ("50 22 0:60 / /mnt/pool rw - fuse.mergerfs pool rw,user_id=0,allow_other", True),
        ("50 22 0:60 / /srv/windows rw - fuseblk /dev/sdb1 rw,user_id=0,allow_other", True),
    ],
    ids=["AppImage", "of a user", "of the system", "NTFS"],
)  # fmt: skip
def test_file_systems_of_a_users_program_are_not_listed(line: str, is_listed: bool) -> None:
    listed = mounts.data_mounts(mounts.parse_mountinfo(f"{ROOT}\n{line}"))
    assert len(listed) == 1 + is_listed  # 1 for ROOT


def test_the_overlay_of_a_container_is_not_listed_if_its_disk_is_listed() -> None:
    layer = "/var/lib/docker/overlay2/4f"
    options = f"rw,lowerdir=/a,upperdir={layer}/diff"
    container = f"60 22 0:70 / {layer}/merged rw - overlay overlay {options}"
    memory = "61 22 0:71 / /run rw - tmpfs tmpfs rw"
    overlay_in_memory = "62 22 0:72 / /data rw - overlay overlay rw,lowerdir=/a,upperdir=/run/up"
    listed = mounts.data_mounts(
        mounts.parse_mountinfo("\n".join((ROOT, container, memory, overlay_in_memory)))
    )
    assert [mount.path for mount in listed] == ["/", "/data"]
    root_overlay = f"22 1 0:70 / / rw - overlay overlay {options}"
    assert len(mounts.data_mounts(mounts.parse_mountinfo(root_overlay))) == 1


@settings(max_examples=examples(50))
@given(st.text() | st.from_regex(r"\d \d \d:\d /\S* /\S* rw - \S+ \S+ rw\n"))
def test_the_parser_of_mountinfo_accepts_any_text(text: str) -> None:
    mounts.data_mounts(mounts.parse_mountinfo(text))


def test_the_errors_of_a_file_system_on_lvm_are_counted(tmp_path: Path) -> None:
    errors = tmp_path / "sys/fs/ext4/dm-0/errors_count"
    errors.parent.mkdir(parents=True)
    errors.write_text("3\n")
    (tmp_path / "dev/mapper").mkdir(parents=True)
    (tmp_path / "dev/mapper/vg-root").symlink_to("../dm-0")
    assert mounts.error_count(tmp_path, "/dev/mapper/vg-root") == 3


def test_the_errors_of_a_root_disk_without_a_device_file_are_counted(tmp_path: Path) -> None:
    line = "25 1 179:2 / / ro,relatime shared:1 - ext4 /dev/root ro\n"
    root = write_files(
        tmp_path,
        {
            "proc/self/mountinfo": line,
            "sys/fs/ext4/mmcblk0p2/errors_count": "0\n",
            "sys/devices/mmcblk0/mmcblk0p2/ro": "0\n",
        },
    )
    (root / "sys/dev/block").mkdir(parents=True)
    (root / "sys/dev/block/179:2").symlink_to("../../devices/mmcblk0/mmcblk0p2")
    (mount,) = mounts.read_mounts(root)
    assert (mount.path, mount.read_only, mount.errors) == ("/", True, 0)


def test_the_space_of_each_mount_is_reported() -> None:
    listed = (Mount("/", "ext4", False), Mount("/home/anna", "nfs4", True, remote=True))

    def query(_: Sequence[Mount], __: Deadline) -> Answers:
        return {"/": Space(1000, 250), "/home/anna": "the mount does not answer"}

    reading = disk_space.read_disk_space(DEADLINE, lambda: listed, query)
    fields = by_key(reading)
    assert fields["disk.mounts"].value == ("/", "/home/*")
    assert fields["disk./.usedFraction"].value == 0.75
    assert fields["disk./home/*.readOnly"].value is True
    assert fields["disk./home/*.freeBytes"].status == "collection-failed"
    assert "anna" not in repr(reading)


def test_mounts_beyond_the_limit_are_counted() -> None:
    listed = [Mount(f"/m{n}", "ext4", False) for n in range(40)]
    reading = disk_space.read_disk_space(DEADLINE, lambda: listed, lambda _, __: {})
    assert reading.truncated
    assert reading.limitations == ("mounts beyond the limit of 32, not listed: 8",)


def test_df_returns_the_space_of_this_machine() -> None:
    answer = disk_space.space_by_df([Mount("/", "ext4", False)], Deadline.after(60))["/"]
    assert isinstance(answer, Space)
    assert 0 <= answer.free_bytes <= answer.size_bytes


def test_the_space_of_a_mount_in_a_directory_of_another_user_is_permission_denied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = ("sh", "-c", "echo 'df: /root/usb: Permission denied' >&2; exit 1")

    def start(*_: object, **__: object) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    monkeypatch.setattr(disk_space, "start_command", start)
    mount = Mount("/root/usb", "ext4", False)
    answers = disk_space.space_by_df([mount], Deadline.after(5))
    fields = {f.key: (f.status, f.reason) for f in disk_space.fields_of(mount, answers[mount.path])}
    assert fields["disk./root/usb.freeBytes"] == (
        "permission-denied",
        "only other users may enter the directory of this mount",
    )
    assert fields["disk./root/usb.readOnly"] == ("available", None)


@pytest.mark.parametrize(
    "data",
    [
        b"Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/vda 100 20 70 23% /\n",
        b"Filesystem 1024-blocks Used Available Capacity Mounted\n//s/my x 100 20 70 23% /a b\n",
    ],
)
def test_output_of_df_is_parsed(data: bytes) -> None:
    assert disk_space.parse_df(data) == Space(102400, 71680)


@given(st.binary())
def test_the_parser_of_df_output_accepts_any_bytes(data: bytes) -> None:
    disk_space.parse_df(data)


@pytest.mark.parametrize(("updated_at", "verdicts"), [(0, {}), (1_795_446_000, {"sda": "good"})])
@pytest.mark.parametrize(
    ("interface", "smart_data"),
    [
        ("Drive.Ata", {"SmartEnabled": True, "SmartFailing": False}),
        ("NVMe.Controller", {"SmartCriticalWarning": []}),
    ],
)
def test_a_drive_whose_smart_data_was_never_read_has_no_verdict(
    interface: str, smart_data: dict[str, object], updated_at: int, verdicts: dict[str, str]
) -> None:
    block = {"Device": [*b"/dev/sda\0"], "Drive": "/drive"}
    objects = {
        "/block": {"org.freedesktop.UDisks2.Block": block},
        "/drive": {
            f"org.freedesktop.UDisks2.{interface}": {**smart_data, "SmartUpdated": updated_at}
        },
    }
    assert drives.parse_udisks(objects) == verdicts


def test_udisks_returns_drive_health() -> None:
    assert drives.parse_udisks(parse_objects(fixture("linux/udisks.json"))) == {
        "sda": "failing",
        "nvme0n1": "good",
    }


def test_drive_facts_are_read(tmp_path: Path) -> None:
    root = write_files(
        tmp_path,
        {
            "sys/block/sda/size": "234441648\n",
            "sys/block/sda/queue/rotational": "0\n",
            "sys/block/sda/device/model": "KINGSTON SA400S3\n",
            "sys/block/sda/device/serial": "LINUXSERIAL2\n",
            "sys/block/mmcblk0/size": "61071360\n",
            "sys/block/mmcblk0/device/name": "SD32G\n",
            "sys/block/mmcblk0/device/life_time": "0x01 0x09\n",
            "sys/block/loop0/size": "1\n",
        },
    )
    objects = parse_objects(fixture("linux/udisks.json"))
    reading = drives.read_drives(DEADLINE, root, lambda _: objects)
    facts = values(reading.fields)
    assert facts["disk.drives"] == ("mmcblk0", "sda")
    assert facts["disk.drive.sda.health"] == "failing"
    assert facts["disk.drive.sda.sizeBytes"] == 120034123776
    assert facts["disk.drive.sda.rotational"] is False
    assert facts["disk.drive.mmcblk0.lifeUsedFraction"] == 0.9
    assert "LINUXSERIAL2" not in repr(reading)
    assert "50026B76" not in repr(reading)


def no_udisks(_: Deadline) -> Objects:
    raise Unreadable("not-applicable", "no service on the system bus provides it")


def output_with_error(message: str, exit_status: int = 2) -> bytes:
    """Return the JSON output of smartctl with an error message and without a result."""
    run = {"exit_status": exit_status, "messages": [{"string": message, "severity": "error"}]}
    return json.dumps({"smartctl": run}).encode()


DENIED = ("permission-denied", None)
NOT_OPENED = ("collection-failed", None)
IN_STANDBY = ("not-applicable", None)


@pytest.mark.parametrize(
    ("answer", "status", "value"),
    [
        (b'{"smartctl":{"exit_status":0},"smart_status":{"passed":true}}', "available", "good"),
        (b'{"smartctl":{"exit_status":8},"smart_status":{"passed":false}}', "available", "failing"),
        (
            b'{"smartctl":{"messages":[{"string":"open /dev/sda failed: Permission denied"}]}}',
            "permission-denied",
            None,
        ),
        (
            b'{"smartctl":{"messages":[{"string":"Device is in STANDBY mode, exit(2)"}]}}',
            "not-applicable",
            None,
        ),
        (b'{"smartctl":{"exit_status":4}}', "unsupported", None),
        (
            output_with_error("Smartctl open device: /dev/sda failed: Operation not permitted"),
            *DENIED,
        ),
        (output_with_error("Smartctl open device: /dev/sda failed: No such device"), *NOT_OPENED),
        (output_with_error("", exit_status=2), *NOT_OPENED),
        (
            output_with_error("/dev/sda: Unknown USB bridge [0x1234:0x5678 (0x100)]", 1),
            "unsupported",
            None,
        ),
        (output_with_error("Device is in SLEEP mode, exit(2)"), *IN_STANDBY),
        (output_with_error("Device is in LOW POWER mode, exit(2)"), *IN_STANDBY),
    ],
)
def test_smartctl_is_used_without_udisks(
    tmp_path: Path, answer: bytes, status: str, value: str | None
) -> None:
    root = write_files(tmp_path, {"sys/block/sda/size": "8\n", "sys/block/vda/size": "8\n"})
    reading = drives.read_drives(
        DEADLINE, root, no_udisks, lambda _, __: smart.parse_health(answer)
    )
    fields = by_key(reading)
    assert fields["disk.drive.sda.health"].status == status
    assert fields["disk.drive.sda.health"].value == value
    assert fields["disk.drive.sda.sizeBytes"].value == 4096
    assert fields["disk.drive.vda.health"].status == "unsupported"


def test_a_drive_whose_check_cannot_start_does_not_affect_the_other_drives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def start(words: tuple[str, ...]) -> subprocess.Popen[bytes]:
        if words[-1] == "/dev/sdb":
            raise BlockingIOError
        verdict = '{"smart_status":{"passed":true}}'
        return subprocess.Popen(
            ("/bin/echo", verdict), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )  # fmt: skip

    monkeypatch.setattr(smart, "start_command", start)
    monkeypatch.setenv("PATH", "/nonexistent")
    query = smart.start_checks(["sda", "sdb"])
    assert query("sda", DEADLINE) == "good"
    with pytest.raises(FileNotFoundError, match="smartctl is not installed"):
        query("sdb", DEADLINE)


def test_a_failing_system_bus_affects_only_the_health_of_drives(tmp_path: Path) -> None:
    def time_out(_: Deadline) -> Objects:
        raise TimeoutError("busctl did not answer before the deadline")

    root = write_files(tmp_path, {"sys/block/sda/size": "8\n"})
    fields = by_key(drives.read_drives(DEADLINE, root, time_out))
    assert fields["disk.drive.sda.health"].status == "collection-failed"
    assert fields["disk.drive.sda.sizeBytes"].status == "available"


@given(st.text())
def test_the_parser_of_drive_life_times_accepts_any_text(text: str) -> None:
    used = drives.parse_life_time(text)
    assert used is None or 0 < used <= 1.1


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=6,
)


@given(
    st.dictionaries(
        st.sampled_from(["/a", "/b"]),
        st.dictionaries(
            st.sampled_from(
                [
                    "org.freedesktop.UDisks2.Block",
                    "org.freedesktop.UDisks2.Drive.Ata",
                    "org.freedesktop.UDisks2.NVMe.Controller",
                ]
            ),
            st.dictionaries(
                st.sampled_from(
                    ["Device", "Drive", "SmartEnabled", "SmartFailing", "SmartCriticalWarning"]
                ),
                json_values | st.just("/a") | st.just(True),
            ),
        ),
    )
)
def test_the_parser_of_udisks_objects_accepts_any_properties(objects: Objects) -> None:
    assert set(drives.parse_udisks(objects).values()) <= {"good", "failing"}


@given(
    st.binary()
    | st.dictionaries(st.sampled_from(["smart_status", "smartctl"]), json_values).map(
        lambda output: json.dumps(output).encode()
    )
)
def test_any_output_of_smartctl_is_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(ValueError, Unreadable):
        assert smart.parse_health(data) in {"good", "failing"}
