# The uninstall command of an Intune app (Win32). State and key stay; -Purge deletes them. Command:
#   powershell.exe -NoProfile -ExecutionPolicy Bypass -File uninstall.ps1
param([switch]$Purge)
$ErrorActionPreference = 'Stop'
# Intune runs commands as 32-bit processes, which see other registry keys by default.
$machine = [Microsoft.Win32.RegistryKey]::OpenBaseKey('LocalMachine', 'Registry64')
$entries = $machine.OpenSubKey('SOFTWARE\Microsoft\Windows\CurrentVersion\Uninstall')
$code = $entries.GetSubKeyNames() | Where-Object { $_ -like '{*}' } |
  Where-Object { $entries.OpenSubKey($_).GetValue('DisplayName') -eq 'Venue agent' } |
  Select-Object -First 1
if (-not $code) { exit 0 }
$arguments = @('/x', $code, '/qn', '/norestart')
if ($Purge) { $arguments += 'PURGE=1' }
exit (Start-Process msiexec.exe -ArgumentList $arguments -Wait -PassThru).ExitCode
