"""Facts of a Linux machine, read from files like those in /proc, /sys and /etc."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.application.deadline import Deadline
from collectors.application.linux import hardware, operating_system, power, pressure
from collectors.application.readers import clock
from collectors.shared.sysfs import whole_number
from collectors.shared.text import decode
from tests.unit.collectors.application.fixtures import by_key, fixture, values, write_files

DEADLINE = Deadline.after(3600)

OS_RELEASE = """PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"
NAME="Debian GNU/Linux"
VERSION_ID="12"
VERSION="12 (bookworm)"
ID=debian
HOME_URL="https://www.debian.org/"
"""


def test_os_release_is_parsed(tmp_path: Path) -> None:
    root = write_files(tmp_path, {"etc/os-release": OS_RELEASE, "etc/debian_version": "12.11\n"})
    facts = values(operating_system.read_system(DEADLINE, root).fields)
    assert facts["os.name"] == "Debian GNU/Linux"
    assert facts["os.version"] == "12 (bookworm)"
    assert facts["os.build"] == "12.11"


def test_the_codename_of_debian_is_not_the_build_of_ubuntu(tmp_path: Path) -> None:
    ubuntu = 'NAME="Ubuntu"\nVERSION="22.04.5 LTS (Jammy Jellyfish)"\nID=ubuntu\nID_LIKE=debian\n'
    root = write_files(tmp_path, {"etc/os-release": ubuntu, "etc/debian_version": "bookworm/sid\n"})
    build = by_key(operating_system.read_system(DEADLINE, root))["os.build"]
    assert build.status == "not-applicable"


def test_fields_of_a_system_without_os_release_have_a_status(tmp_path: Path) -> None:
    fields = by_key(operating_system.read_system(DEADLINE, tmp_path))
    assert fields["os.name"].status == "unsupported"
    assert fields["os.version"].status == "not-applicable"


def test_a_pending_reboot_is_detected(tmp_path: Path) -> None:
    assert operating_system.pending_reboot(tmp_path).status == "unsupported"
    write_files(tmp_path, {"etc/os-release": OS_RELEASE})
    assert operating_system.pending_reboot(tmp_path).status == "unsupported"
    write_files(tmp_path, {"etc/kernel/postinst.d/unattended-upgrades": ""})
    assert operating_system.pending_reboot(tmp_path).value is False
    write_files(tmp_path, {"run/reboot-required": ""})
    assert operating_system.pending_reboot(tmp_path).value is True


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"sys/fs/pstore/dmesg-ramoops-0": "Oops"}, "kernel-crash"),
        # The bits of bootstatus: WDIOF_CARDRESET is 32, and WDIOF_POWERUNDER is 16.
        ({"sys/class/watchdog/watchdog0/bootstatus": "32\n"}, "watchdog"),
        ({"sys/class/watchdog/watchdog0/bootstatus": "16\n"}, "power-failure"),
        ({"sys/class/watchdog/watchdog0/bootstatus": "0\n"}, None),
        ({"sys/class/watchdog/watchdog0/bootstatus": "99999999999999999999\n"}, None),
    ],
)
def test_the_reason_of_the_last_boot_is_determined(
    tmp_path: Path, files: dict[str, str | bytes], reason: str | None
) -> None:
    assert operating_system.boot_reason(write_files(tmp_path, files)).value == reason


def test_time_zone_and_locale_are_read(tmp_path: Path) -> None:
    write_files(tmp_path, {"etc/default/locale": 'LANG="de_DE.UTF-8"\n'})
    (tmp_path / "etc/localtime").symlink_to("/usr/share/zoneinfo/Europe/Vienna")
    assert operating_system.time_zone(tmp_path) == "Europe/Vienna"
    assert operating_system.locale_name(tmp_path) == "de_DE.UTF-8"


@given(st.text())
def test_the_parser_of_assignments_accepts_any_text(text: str) -> None:
    for name in operating_system.parse_assignments(text):
        assert name.isidentifier()


def test_machine_facts_are_read(tmp_path: Path) -> None:
    root = write_files(
        tmp_path,
        {
            "sys/class/dmi/id/sys_vendor": "Intel\n",
            "sys/class/dmi/id/product_name": "To Be Filled By O.E.M.\n",
            "sys/class/dmi/id/product_serial": "LINUXSERIAL1\n",
            "sys/class/dmi/id/chassis_type": "35\n",
            "proc/device-tree/model": "Raspberry Pi 4 Model B Rev 1.5\0",
        },
    )
    reading = hardware.read_machine(DEADLINE, root)
    assert values(reading.fields) == {
        "hardware.maker": "Intel",
        "hardware.model": "Raspberry Pi 4 Model B Rev 1.5",
        "hardware.formFactor": "mini-pc",
    }
    assert "LINUXSERIAL1" not in repr(reading)


def test_the_model_of_the_processor_is_parsed() -> None:
    arm = decode(fixture("linux/cpuinfo-arm.txt"))
    assert hardware.parse_cpu_model(arm) == "ARM Cortex-A72"
    pi_3 = arm.replace("0xd08", "0xd03").replace("Pi 4 Model B Rev 1.5", "Pi 3 Model B Plus")
    assert hardware.parse_cpu_model(f"{pi_3}Hardware\t: BCM2835\n") == "ARM Cortex-A53"
    assert hardware.parse_cpu_model("Hardware\t: BCM2835\nModel\t: A board\n") == "BCM2835"
    assert hardware.parse_cpu_model("Model\t: A board\n") is None
    old = "Processor\t: ARMv7 Processor rev 5 (v7l)\nprocessor\t: 0\nHardware\t: A board\n"
    assert hardware.parse_cpu_model(old) == "ARMv7 Processor rev 5 (v7l)"
    assert hardware.parse_cpu_model("model name\t: Intel(R) Celeron(R)\n") == "Intel(R) Celeron(R)"
    assert hardware.parse_cpu_model("") is None


@given(st.text())
def test_the_parser_of_cpu_models_accepts_any_text(text: str) -> None:
    hardware.parse_cpu_model(text)


def test_temperatures_are_read(tmp_path: Path) -> None:
    root = write_files(
        tmp_path,
        {
            "sys/class/hwmon/hwmon0/name": "coretemp\n",
            "sys/class/hwmon/hwmon0/temp1_input": "47500\n",
            "sys/class/hwmon/hwmon0/temp1_label": "Package id 0\n",
            "sys/class/hwmon/hwmon0/temp2_input": "garbage\n",
            "sys/class/hwmon/hwmon0/temp3_input": "-274000\n",
            "sys/class/thermal/thermal_zone0/type": "acpitz\n",
            "sys/class/thermal/thermal_zone0/temp": "51000\n",
        },
    )
    facts = values(hardware.read_temperatures(DEADLINE, root).fields)
    assert facts["hardware.temperatureCelsius"] == 51.0
    assert facts["hardware.temperatures"] == ("coretemp Package id 0 47.5", "acpitz 51.0")


def test_a_sensor_that_is_in_hwmon_and_in_a_thermal_zone_is_listed_once(tmp_path: Path) -> None:
    zones = {"acpitz": 27800, "cpu-thermal": 51000, "x86_pkg_temp": 47000, "soc": 40000}
    chips = ("acpitz", "cpu_thermal", "coretemp", "mute")
    files = {f"sys/class/hwmon/hwmon{n}/name": f"{name}\n" for n, name in enumerate(chips)}
    files |= {f"sys/class/hwmon/hwmon{n}/temp1_input": f"{n + 1}0000\n" for n in range(3)}
    for number, (name, millidegrees) in enumerate({**zones, "mute": 35000}.items()):
        zone = f"sys/class/thermal/thermal_zone{number}"
        files |= {f"{zone}/type": f"{name}\n", f"{zone}/temp": f"{millidegrees}\n"}
    facts = values(hardware.read_temperatures(DEADLINE, write_files(tmp_path, files)).fields)
    assert facts["hardware.temperatures"] == (
        *("acpitz 10.0", "cpu_thermal 20.0", "coretemp 30.0"),
        *("soc 40.0", "mute 35.0"),
    )


def test_the_reported_temperature_comes_from_the_connected_sensor_closest_to_its_limit(
    tmp_path: Path,
) -> None:
    sensors = {
        "nct6779 AUXTIN0": (121000, None),
        "it8620 temp": (124000, None),
        "amdgpu junction": (91000, 110000),
        "nvme Sensor 2": (96000, 65261850),
        "k10temp Tctl": (82000, None),
    }
    files = {}
    for number, (sensor, (now, limit)) in enumerate(sensors.items()):
        chip, label = sensor.split(" ", 1)
        path = f"sys/class/hwmon/hwmon{number}"
        files |= {
            f"{path}/name": chip,
            f"{path}/temp1_label": label,
            f"{path}/temp1_input": f"{now}",
        }
        files |= {f"{path}/temp1_crit": f"{limit}"} if limit else {}
    facts = values(hardware.read_temperatures(DEADLINE, write_files(tmp_path, files)).fields)
    assert facts["hardware.temperatureCelsius"] == 82.0
    assert "hardware.temperatureLimitCelsius" not in facts
    assert len(facts["hardware.temperatures"]) == len(sensors)
    files["sys/class/hwmon/hwmon2/temp1_input"] = "104000"
    facts = values(hardware.read_temperatures(DEADLINE, write_files(tmp_path, files)).fields)
    assert facts["hardware.temperatureCelsius"] == 104.0
    assert facts["hardware.temperatureLimitCelsius"] == 110.0


def test_temperatures_of_a_machine_without_sensors_are_not_applicable(tmp_path: Path) -> None:
    fields = hardware.read_temperatures(DEADLINE, tmp_path).fields
    assert {(field.status, field.reason) for field in fields} == {
        ("not-applicable", "this machine shows no temperature sensor")
    }


@pytest.mark.parametrize("sensor", ["nct6775 SYSTIN", "nvme Sensor 1"])
def test_a_machine_with_only_unreliable_sensors_lists_them_and_has_no_hottest_sensor(
    tmp_path: Path, sensor: str
) -> None:
    chip, label = sensor.split(" ", 1)
    files = {"name": chip, "temp1_label": label, "temp1_input": "41000", "temp1_crit": "90000"}
    root = write_files(
        tmp_path, {f"sys/class/hwmon/hwmon0/{name}": text for name, text in files.items()}
    )
    fields = by_key(hardware.read_temperatures(DEADLINE, root))
    assert fields["hardware.temperatures"].value == (f"{sensor} 41.0",)
    for key in ("hardware.temperatureCelsius", "hardware.temperatureLimitCelsius"):
        assert fields[key].status == "not-applicable"
        assert fields[key].reason == "no temperature sensor is reliable"


def test_the_reason_for_a_missing_limit_is_that_the_hottest_sensor_reports_no_limit(
    tmp_path: Path,
) -> None:
    zone = "sys/class/thermal/thermal_zone0"
    root = write_files(tmp_path, {f"{zone}/type": "acpitz", f"{zone}/temp": "51000"})
    fields = by_key(hardware.read_temperatures(DEADLINE, root))
    assert fields["hardware.temperatureCelsius"].value == 51.0
    limit = fields["hardware.temperatureLimitCelsius"]
    assert limit.reason == "the hottest sensor reports no limit"


def test_pressure_stall_information_is_read(tmp_path: Path) -> None:
    text = "some avg10=1.00 avg60=12.50 avg300=0.00 total=9\nfull avg10=0 avg60=99.0 avg300=0\n"
    root = write_files(tmp_path, {"proc/pressure/cpu": text, "proc/pressure/io": "nonsense"})
    fields = by_key(pressure.read_pressure(DEADLINE, root))
    assert fields["cpu.stalledFraction"].value == 0.125
    assert fields["disk.stalledFraction"].status == "unsupported"
    assert fields["memory.stalledFraction"].status == "unsupported"


@given(st.text())
def test_the_parser_of_pressure_stall_information_accepts_any_text(text: str) -> None:
    share = pressure.parse_pressure(text)
    assert share is None or 0 <= share <= 1


@given(st.text())
def test_the_parser_of_whole_numbers_accepts_any_text(text: str) -> None:
    number = whole_number(text)
    assert number is None or abs(number) < 10**18


def timex_of(status: int, offset: int) -> clock.Timex:
    """Return the kernel's clock values. The bits of ``status`` are flags.

    0x0040 (STA_UNSYNC) means not synchronised. With 0x2000 (STA_NANO), ``offset`` is in
    nanoseconds, otherwise in microseconds.
    """
    return clock.Timex(status=status, offset=offset)


def test_synchronised_clock_has_an_offset(tmp_path: Path) -> None:
    facts = values(
        clock.read_clock(DEADLINE, tmp_path, lambda: (0, timex_of(0x2001, -1_500_000))).fields
    )
    assert facts == {"os.clockSynchronised": True, "os.clockOffsetMilliseconds": -1.5}
    facts = values(
        clock.read_clock(DEADLINE, tmp_path, lambda: (0, timex_of(0x0001, 2_000))).fields
    )
    assert facts["os.clockOffsetMilliseconds"] == 2.0


def test_a_clock_without_synchronisation_is_reported(tmp_path: Path) -> None:
    fields = by_key(clock.read_clock(DEADLINE, tmp_path, lambda: (5, timex_of(0x0040, 0))))
    assert fields["os.clockSynchronised"].value is False
    assert fields["os.clockOffsetMilliseconds"].status == "not-applicable"


@pytest.mark.parametrize(
    ("files", "setter"),
    [
        ({"proc/812/comm": "chronyd", "etc/chrony/chrony.conf": "pool a\nrtcsync\n"}, None),
        ({"proc/812/comm": "chronyd", "etc/chrony.conf": "pool a\n#rtcsync\n"}, "chronyd"),
        ({"proc/900/comm": "ntpd"}, None),
        ({"proc/900/comm": "ntpd", "run/ntpd.sock": ""}, "OpenNTPD"),
        ({"proc/1001/comm": "vmtoolsd"}, "vmtoolsd"),
        (
            {"sys/bus/vmbus/devices/a/class_id": "{9527e630-d0ae-497b-adce-e80ab0175caf}"},
            "Hyper-V",
        ),
    ],
    ids=["chrony", "chrony without rtcsync", "ntpd", "OpenNTPD", "guest tools", "Hyper-V"],
)
def test_synchronisation_is_unsupported_if_a_program_sets_the_clock_without_a_report_to_the_kernel(
    tmp_path: Path, files: dict[str, str], setter: str | None
) -> None:
    root = write_files(tmp_path, files)
    field = by_key(clock.read_clock(DEADLINE, root, lambda: (5, timex_of(0x0040, 0))))[
        "os.clockSynchronised"
    ]
    if setter is None:
        assert field.value is False
    else:
        assert field.status == "unsupported"
        assert field.reason == (
            f"{setter} sets the clock, but does not report to the kernel that it is synchronised"
        )


def deny() -> tuple[int, clock.Timex]:
    raise PermissionError(1, os.strerror(1))


def test_clock_facts_without_permission_have_a_status(tmp_path: Path) -> None:
    fields = clock.read_clock(DEADLINE, tmp_path, deny).fields
    assert {field.status for field in fields} == {"permission-denied"}
    write_files(tmp_path, {"run/systemd/timesync/synchronized": ""})
    facts = by_key(clock.read_clock(DEADLINE, tmp_path, deny))
    assert facts["os.clockSynchronised"].value is True
    assert facts["os.clockOffsetMilliseconds"].status == "permission-denied"


@pytest.mark.needs("clock-state")
def test_this_kernel_answers_adjtimex() -> None:
    state, timex = clock.adjtimex()
    assert 0 <= state <= 5
    assert timex.maxerror >= 0


@pytest.mark.parametrize(
    ("supplies", "expected"),
    [
        ({"BAT0/type": "Battery", "BAT0/capacity": "20", "BAT1/type": "Battery",
          "BAT1/capacity": "90", "BAT1/charge_full": "40", "BAT1/charge_full_design": "50",
          "AC/type": "Mains", "AC/online": "0"}, (0.55, "battery", 0.8)),
        ({"BAT0/type": "Battery", "BAT0/capacity": "9", "BAT0/status": "Unknown"},
         (0.09, None, None)),
        ({"BAT0/type": "Battery", "BAT0/present": "0"}, (None, "mains", None)),
        ({"BAT0/type": "Battery", "AC/online": "0", "ucsi/online": "1"}, (None, "mains", None)),
        ({"mouse/type": "Battery", "mouse/scope": "Device", "mouse/capacity": "5",
          "mouse/status": "Discharging"}, (None, "mains", None)),
    ],
    ids=["two batteries", "unknown state", "removed battery", "USB charger", "wireless mouse"],
)  # fmt: skip
def test_batteries_are_read(
    tmp_path: Path, supplies: dict[str, str], expected: tuple[object, ...]
) -> None:
    write_files(
        tmp_path, {f"sys/class/power_supply/{name}": text for name, text in supplies.items()}
    )
    facts = values(power.read_power(DEADLINE, tmp_path).fields)
    keys = ("hardware.batteryFraction", "hardware.powerSource", power.HEALTH)
    assert tuple(map(facts.get, keys)) == expected
