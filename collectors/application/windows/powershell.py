"""The PowerShell scripts for Windows. Each section of a script runs one query.

A script prints a JSON object. It has ``{"ok": [...]}`` or ``{"error": "..."}`` for each section, so
an error in one section does not affect the others. The scripts read only the properties that they
name. None of these is a serial number, an owner, a command line or the name of a document. The id
of a USB device contains its serial number, which the script replaces by a hash.

If a policy of AppLocker or App Control restricts scripts ("constrained language mode"), PowerShell
denies most methods and properties of .NET. The scripts work without them: texts then are in the
console's code page, and the hashes are missing.
"""

from typing import Final

_PRELUDE: Final = r"""
$ErrorActionPreference = 'Stop'
$ProgressPreference = 'SilentlyContinue'
try { [Console]::OutputEncoding = [Text.UTF8Encoding]::new($false) } catch { }
$out = @{}
function Read-Section([string]$name, [scriptblock]$query) {
  try { $out[$name] = @{ ok = @(& $query) } }
  catch { $out[$name] = @{ error = $_.CategoryInfo.Reason } }
}
function Utc($time) {
  # The format 's' is the same in every region. In other formats, the calendar and the separator
  # between hours and minutes depend on the region.
  if ($time) { $time.ToUniversalTime().ToString('s') + 'Z' }
}
"""

_ENDING: Final = r"""
ConvertTo-Json -InputObject $out -Depth 4 -Compress
"""

_MACHINE: Final = r"""
$windows = 'HKLM:\SOFTWARE\Microsoft\Windows'
$version = "$windows\CurrentVersion"
Read-Section 'os' {
  Get-CimInstance Win32_OperatingSystem |
    Select-Object Caption, Version, BuildNumber, OSArchitecture,
      @{n='BootedAt';e={Utc $_.LastBootUpTime}}
}
Read-Section 'build' {
  Get-ItemProperty 'HKLM:\SOFTWARE\Microsoft\Windows NT\CurrentVersion' |
    Select-Object DisplayVersion, UBR
}
Read-Section 'reboot' {
  [pscustomobject]@{ Pending =
    (Test-Path "$version\Component Based Servicing\RebootPending") -or
    (Test-Path "$version\WindowsUpdate\Auto Update\RebootRequired") }
}
Read-Section 'shutdown' {
  Get-WinEvent -MaxEvents 1 -FilterHashtable @{LogName='System';Id=41,1074,6008} |
    Select-Object Id
}
Read-Section 'region' {
  [pscustomobject]@{ TimeZone = (Get-TimeZone).Id; Locale = (Get-WinSystemLocale).Name }
}
Read-Section 'computer' {
  Get-CimInstance Win32_ComputerSystem |
    Select-Object Manufacturer, Model, PCSystemType
}
Read-Section 'firmware' { Get-CimInstance Win32_BIOS | Select-Object SMBIOSBIOSVersion }
Read-Section 'processor' {
  Get-CimInstance Win32_Processor |
    Select-Object Name, NumberOfCores, NumberOfLogicalProcessors
}
Read-Section 'screens' {
  Get-CimInstance -Namespace root/wmi WmiMonitorID | Select-Object Active,
    @{n='Maker';e={-join [char[]]($_.ManufacturerName -ne 0)}},
    @{n='Model';e={-join [char[]]($_.UserFriendlyName -ne 0)}}
}
Read-Section 'video' {
  Get-CimInstance Win32_VideoController |
    Select-Object CurrentHorizontalResolution, CurrentVerticalResolution
}
Read-Section 'drives' {
  Get-PhysicalDisk | Select-Object DeviceId, FriendlyName, Size,
    @{n='Media';e={[string]$_.MediaType}}, @{n='Health';e={[string]$_.HealthStatus}}
}
Read-Section 'services' {
  Get-CimInstance Win32_Service -Filter "Name='Spooler' OR Name='W32Time' OR Name='bthserv'" |
    Select-Object Name, State, StartMode
}
Read-Section 'nameServers' {
  Get-DnsClientServerAddress | ForEach-Object { $_.ServerAddresses } |
    Select-Object -Unique | ForEach-Object { [pscustomobject]@{ Address = $_ } }
}
"""

_ADAPTERS: Final = r"""
Read-Section 'adapters' {
  Get-NetAdapter |
    Select-Object Name, @{n='Medium';e={[string]$_.PhysicalMediaType}}, Virtual,
      HardwareInterface, InterfaceIndex, InterfaceGuid
}
Read-Section 'dhcp' {
  Get-CimInstance Win32_NetworkAdapterConfiguration -Filter 'IPEnabled=TRUE' |
    Select-Object InterfaceIndex, DHCPEnabled, DHCPServer,
      @{n='Obtained';e={Utc $_.DHCPLeaseObtained}}, @{n='Expires';e={Utc $_.DHCPLeaseExpires}}
}
Read-Section 'routes' {
  Get-NetRoute | Where-Object { $_.DestinationPrefix -in '0.0.0.0/0', '::/0' } |
    Select-Object InterfaceAlias
}
"""

# The last part of a device's id is its serial number. If it contains "&", Windows generated it.
_DEVICES: Final = r"""
function Get-InstanceHash([string]$id) {
  $last = $id.Split('\')[-1]
  if ($last -match '&') { return $null }
  try {
    $sha = [Security.Cryptography.SHA256]::Create()
    $bytes = $sha.ComputeHash([Text.Encoding]::UTF8.GetBytes($last))[0..7]
    -join ($bytes | ForEach-Object { $_.ToString('x2') })
  } catch { }
}
Read-Section 'usb' {
  Get-CimInstance Win32_PnPEntity -Filter "PNPDeviceID LIKE 'USB\\VID%'" |
    Where-Object Present |
    Select-Object Name, Manufacturer, PNPClass, Service, CompatibleID,
      @{n='Hardware';e={$_.PNPDeviceID.Split('\')[1]}},
      @{n='InstanceHash';e={Get-InstanceHash $_.PNPDeviceID}}
}
Read-Section 'bluetooth' {
  $paired = "PNPDeviceID LIKE 'BTHENUM\\DEV%' OR PNPDeviceID LIKE 'BTHLE\\DEV%'"
  Get-CimInstance Win32_PnPEntity -Filter $paired |
    Select-Object @{n='Address';e={($_.PNPDeviceID.Split('\')[1] -split '_')[1]}}
}
Read-Section 'radios' {
  $radio = "PNPClass='Bluetooth' AND PNPDeviceID LIKE 'USB%'"
  Get-CimInstance Win32_PnPEntity -Filter $radio | Select-Object Status
}
Read-Section 'printers' {
  Get-CimInstance Win32_Printer |
    Select-Object Name, PrinterStatus, PrinterState, DetectedErrorState, WorkOffline
}
Read-Section 'jobs' {
  Get-CimInstance Win32_PrintJob | Select-Object StatusMask,
    @{n='Queue';e={($_.Name -split ',')[0]}},
    @{n='AgeSeconds';e={[int]((Get-Date) - $_.TimeSubmitted).TotalSeconds}}
}
"""

MACHINE: Final = _PRELUDE + _MACHINE + _ENDING
ADAPTERS: Final = _PRELUDE + _ADAPTERS + _ENDING
DEVICES: Final = _PRELUDE + _DEVICES + _ENDING
