"""Healthy machines of many kinds: no problem and no warning may be found on them."""

from collectors.network.observations import Evidence, KnownPrinter
from tests.unit.agent.presentation.findings.machines.bases import (
    CABLE,
    KIOSK,
    LINUX,
    LOOPBACK,
    MAC,
    PI,
    WIFI,
    WINDOWS,
    sensors,
    supply,
)
from tests.unit.agent.presentation.findings.machines.compose import (
    ALONE,
    Disk,
    Link,
    Machine,
    host,
    queue,
)

ROOT = Disk("/", size=230, free=160)
BMC = Link("usb0", ("169.254.95.120/16",), speed=10)
LAYER = "/var/lib/docker/overlay2/4f"
OVERLAY = f"rw,lowerdir=/a,upperdir={LAYER}/diff,workdir={LAYER}/work"
WINDOWS_ADAPTER = {"Medium": "802.3", "Virtual": False, "HardwareInterface": True}

HEALTHY: tuple[Machine, ...] = (
    LINUX,
    KIOSK,
    PI,
    WINDOWS,
    MAC,
    # -------------------------------------------------------------- servers
    LINUX.but(
        "a server whose management controller is a USB interface",
        links=(LOOPBACK, CABLE, BMC), queues=None, watched={},
    ),
    LINUX.but(
        "a server with unconnected inputs of its nct6779 and a hot second sensor of its NVMe",
        files=sensors(("coretemp Package id 0", 61, 100), ("nct6779 AUXTIN0", 121, 0),
                      ("nct6779 AUXTIN3", 127, 0), ("nvme Sensor 2", 96.9, 65261.9)),
    ),
    LINUX.but(
        "a Threadripper, whose Tctl is 27 degrees above its temperature",
        files={**sensors(("k10temp Tctl", 92.4, 0)), "sys/class/hwmon/hwmon0/temp2_label": "Tdie",
               "sys/class/hwmon/hwmon0/temp2_input": "65400"},
    ),
    LINUX.but(
        "a virtualisation host with ZFS, a bridge and the file system of its cluster",
        links=(LOOPBACK, Link("eno1", kind="ethernet"), Link("tap100i0", kind="1", speed=10),
               Link("vmbr0", ("192.168.1.5/24",), "192.168.1.1", "1 bridge")),
        disks=(Disk("/", "zfs", 400, 300, "rpool/ROOT/pve-1", "rw,xattr"),
               Disk("/rpool/data", "zfs", 300, 300, "rpool/data"),
               Disk("/etc/pve", "fuse", 0.125, 0.124, "/dev/fuse", "rw,user_id=0,allow_other")),
    ),
    LINUX.but(
        "a server with RAID and LVM",
        files={"proc/mdstat": "md0 : active raid1 sdb1[1] sda1[0]\n"},
        disks=(Disk("/", "xfs", 70, 40, "/dev/mapper/vg-root"),
               Disk("/srv", "ext4", 3600, 800, "/dev/md0")),
        memory=(64, 20, 8, 2),
    ),
    LINUX.but(
        "a container host: overlays of containers on its disk, bridges and pairs",
        links=(LOOPBACK, CABLE, Link("docker0", ("172.17.0.1/16",), kind="1 bridge"),
               Link("veth1@if5", ("fe80::9/64",), kind="1 veth", speed=10000)),
        disks=(ROOT, Disk(f"{LAYER}/merged", "overlay", 230, 160, "overlay", OVERLAY)),
    ),
    # -------------------------------------------------------------- virtual machines, containers
    LINUX.but(
        "a VMware guest whose tools set its clock, with the empty file system of drag and drop",
        files={"proc/812/comm": "vmtoolsd\n"}, clock=ALONE,
        disks=(ROOT, Disk("/run/vmblock-fuse", "fuse.vmware-vmblock", device="vmware-vmblock",
                          options="rw,user_id=0,group_id=0,default_permissions,allow_other",
                          df="vmware-vmblock 0 0 0 - /run/vmblock-fuse")),
    ),
    LINUX.but(
        "a Hyper-V guest",
        files={"sys/bus/vmbus/devices/a/class_id": "{9527e630-d0ae-497b-adce-e80ab0175caf}\n"},
        clock=ALONE,
    ),
    LINUX.but(
        "a VirtualBox guest behind NAT, where only the gateway answers",
        files={"proc/900/comm": "VBoxService\n"}, clock=ALONE,
        links=(LOOPBACK, Link("enp0s3", ("10.0.2.15/24",), "10.0.2.2")),
        lan=(host("10.0.2.2", 2, "enp0s3", open_ports=(53,)),),
    ),
    LINUX.but(
        "a cloud server with a network of one address",
        links=(LOOPBACK, Link("ens4", ("10.132.0.2/32",), "10.132.0.1", speed=-1)), lan=(),
        files={"sys/class/drm/none": ""}, queues=None, watched={},
    ),
    LINUX.but(
        "an LXC container, whose host keeps the clock without telling the kernel",
        files={"run/systemd/container": "lxc\n"}, clock=ALONE,
        units={"systemd-timesyncd.service": ("inactive", "enabled", 0)},
        links=(LOOPBACK, Link("eth0", ("10.0.3.20/24",), "10.0.3.1", "1 veth", speed=10000)),
        disks=(Disk("/", "zfs", 90, 60, "tank/ct", "rw"),
               Disk("/var/lib/snapd/snap/core22/9", "fuse.snapfuse", 0.07, 0, "snapfuse",
                    "ro,user_id=0,group_id=0,allow_other")),
        queues=None,
    ),
    LINUX.but(
        "a Docker container",
        files={".dockerenv": ""}, clock=ALONE, units={}, queues=None,
        links=(LOOPBACK, Link("eth0", ("172.17.0.2/16",), "172.17.0.1", "1 veth", speed=10000)),
        disks=(Disk("/", "overlay", 230, 160, "overlay", OVERLAY),
               Disk("/etc/hosts", size=230, free=160)),
        lan=(host("172.17.0.1", 1),),
    ),
    LINUX.but(
        "Windows Subsystem for Linux",
        files={"sys/bus/vmbus/devices/a/class_id": "{9527e630-d0ae-497b-adce-e80ab0175caf}\n"},
        clock=ALONE,
        disks=(Disk("/", size=1007, free=900, device="/dev/sdd"),
               Disk("/usr/lib/wsl/drivers", "9p", 237, 90, "drivers", "ro,aname=drivers")),
    ),
    # -------------------------------------------------------------- laptops, desktops
    LINUX.but(
        "a laptop on its battery, with Wi-Fi and an unplugged cable",
        files={"proc/net/wireless": "a\nb\n wlan0: 0000   56.  -54.  -256        0      0\n",
               **supply("BAT0", capacity=64, status="Discharging", energy_full=41_000_000,
                        energy_full_design=50_000_000),
               **supply("AC", type="Mains", online=0)},
        battery=(0.64, False),
        links=(LOOPBACK, Link("eth0", is_up=False, speed=0), WIFI),
    ),
    LINUX.but(
        "a desktop with a wireless mouse whose battery is nearly empty",
        files=supply("hidpp_battery_0", scope="Device", capacity=5, status="Discharging"),
        battery=(0.05, False),
    ),
    LINUX.but(
        "a desktop with an AppImage, the document portals of two versions, and a user's cloud disk",
        disks=(ROOT,
               Disk("/tmp/.mount_TillX", "fuse.Till.AppImage", 0.1, 0, "Till", "ro,user_id=1000"),
               Disk("/run/user/1000/doc", "fuse", device="/dev/fuse", options="rw,user_id=1000",
                    df="df: /run/user/1000/doc: Operation not permitted"),
               Disk("/run/user/1001/doc", "fuse.portal", 0, 0, "portal", "rw,user_id=1001"),
               Disk("/home/anna/cloud", "fuse.rclone", 15, 0, "cloud:", "rw,user_id=1000")),
    ),
    LINUX.but(
        "a desktop with snaps",
        disks=(ROOT, Disk("/snap/core22/1380", "squashfs", 0.07, 0, "/dev/loop3", "ro"),
               Disk("/snap/firefox/4259", "squashfs", 0.26, 0, "/dev/loop4", "ro")),
    ),
    LINUX.but(
        "a desktop with network disks, one of them hidden by another mount",
        disks=(ROOT, Disk("/mnt/sales", "cifs", 900, 300, "//nas/sales", "rw,vers=3.1.1"),
               Disk("/mnt/nfs", "nfs4", 900, 300, "nas:/export"),
               Disk("/srv/old/data", device="/dev/sdb1",
                    df="df: /srv/old/data: No such file or directory")),
    ),
    LINUX.but(
        "a desktop with Btrfs snapshots",
        disks=(Disk("/", "btrfs", 230, 90, "/dev/sda2", "rw,subvol=/@"),
               Disk("/.snapshots", "btrfs", 230, 90, "/dev/sda2", "rw,subvol=/@/.snapshots")),
    ),
    # -------------------------------------------------------------- Raspberry Pi
    PI.but(
        "a Raspberry Pi with an overlay over its card",
        disks=(Disk("/", "overlay", 0.45, 0.4, "overlay", "rw,lowerdir=/lower,upperdir=/upper/d"),
               Disk("/media/root-ro", size=29, free=20, device="/dev/mmcblk0p2", options="ro")),
    ),
    PI.but(
        "a Raspberry Pi that is set up with a read-only card",
        files={"sys/fs/ext4/mmcblk0p2/errors_count": "0\n"},
        disks=(Disk("/", size=29, free=20, device="/dev/mmcblk0p2", options="ro"),),
    ),
    PI.but("a Raspberry Pi Zero with compressed swap", memory=(0.42, 0.1, 0.42, 0.2),
           watched={"pos-till": 0.1}),
    # -------------------------------------------------------------- clocks
    LINUX.but("chrony without rtcsync", clock=ALONE,
              files={"proc/812/comm": "chronyd\n", "etc/chrony/chrony.conf": "pool a iburst\n"}),
    LINUX.but("OpenNTPD", clock=ALONE, files={"run/ntpd.sock": ""}),
    LINUX.but("a firewall that only lets htpdate pass", clock=ALONE,
              files={"proc/700/comm": "htpdate\n"}),
    # -------------------------------------------------------------- networks
    LINUX.but(
        "a till with PPPoE",
        links=(LOOPBACK, Link("eth0", ("192.168.1.20/24",)), Link("eth1", ("fe80::21/64",)),
               Link("ppp0", ("203.0.113.7/32",), "direct", "512", speed=0)),
        lan=(host("192.168.1.77", 77),),
    ),
    LINUX.but(
        "a till with LTE, and a payment terminal at a slow cable of its own",
        links=(LOOPBACK, Link("wwan0", ("10.64.3.9/30",), "direct", "65534", speed=0),
               Link("eth1", ("192.168.0.1/24",), speed=10, duplex=1)),
        lan=(host("192.168.0.2", 2, "eth1"),),
    ),
    LINUX.but("a food truck, where only the LTE router answers", lan=(host("192.168.1.1", 1),)),
    LINUX.but(
        "a till with WireGuard, whose tunnel counts errors",
        links=(LOOPBACK, CABLE, Link("wg0", ("10.9.0.4/32",), kind="65534", errors=90_000)),
    ),
    LINUX.but(
        "a network with IPv4 and IPv6, whose IPv6 router was not used lately",
        links=(LOOPBACK, Link("eth0", ("192.168.1.20/24", "2001:db8::20/64"),
                              "192.168.1.1 fe80::1")),
        lan=(host("192.168.1.1", 1, open_ports=(53,)), host("192.168.1.77", 77)),
    ),
    LINUX.but(
        "a network with IPv6 only",
        files={"etc/resolv.conf": "nameserver 2001:db8::1\n"},
        links=(LOOPBACK, Link("eth0", ("2001:db8::20/64", "fe80::20/64"), "fe80::1")), lan=(),
    ),
    LINUX.but(
        "a till that is the access point of its tablets",
        files={"proc/net/wireless": "a\nb\n wlan0: 0000    0.  -256.  -256.       0      0\n"},
        links=(LOOPBACK, CABLE, Link("wlan0", ("10.42.0.1/24",), kind="wifi")),
    ),
    LINUX.but(
        "printers that are low on supplies, and one that reports that its Wi-Fi is not set up",
        queues=(queue("bar", "media-low-warning", "wifi-not-configured-report"),
                queue("office", "toner-low-report", "cups-waiting-for-job-completed")),
        printers=(KnownPrinter("bar", "bar", "network", "cups", "192.168.1.77:9100",
                               "192.168.1.77", ("192.168.1.77",), 9100),),
        lan=(host("192.168.1.1", 1), host("192.168.1.77", 77, open_ports=(9100, 631))),
        answers=(Evidence("192.168.1.77", 9100, state="idle", queue="ipp/print", state_reasons=(
            "media-low-warning", "wifi-not-configured-report")),),
    ),
    # -------------------------------------------------------------- Windows, macOS
    WINDOWS.but(
        "Windows with the full recovery partition of its maker",
        disks=(*WINDOWS.disks, Disk("D:\\", "NTFS", 12, 0.9, options="rw,fixed", label="RECOVERY")),
    ),
    WINDOWS.but(
        "a German Windows with a recovery partition",
        disks=(*WINDOWS.disks, Disk("D:\\", "NTFS", 0.5, 0.01, options="rw,fixed",
                                    label="Wiederherstellung"),
               Disk("E:\\", "NTFS", 0.34, 0.02, options="rw,fixed", label="System-reserviert")),
    ),
    WINDOWS.but(
        "a Windows server whose management controller is a slow USB interface",
        links=(*WINDOWS.links, Link("USB-NDIS", ("169.254.95.120/16",), speed=10, duplex=1)),
    ),
    WINDOWS.but(
        "Windows with an installation stick, a CD and a stopped time service",
        disks=(*WINDOWS.disks, Disk("F:\\", "FAT32", 7, 0.1, options="rw,removable"),
               Disk("G:\\", "CDFS", 4, 0, options="ro,cdrom")),
        commands={"w32tm": ""},
    ),
    MAC.but(
        "a MacBook with growing swap, a mounted image and an iPhone",
        memory=(8, 1.5, 3, 2.6), battery=(0.5, False), clock=ALONE,
        disks=(*MAC.disks, Disk("/Volumes/Install", "hfs", 0.2, 0, options="ro,local"),
               Disk("/System/Volumes/VM", "apfs", 460, 190, options="rw,local")),
        links=(*MAC.links, Link("en8", ("169.254.7.9/16",), speed=0)),
    ),
)  # fmt: skip
