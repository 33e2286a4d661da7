# The uninstall command of an Intune app (Win32). State and key stay; -Purge deletes them. Command:
#   powershell.exe -NoProfile -ExecutionPolicy Bypass -File uninstall.ps1
param([switch]$Purge)
$ErrorActionPreference = 'Stop'
$entries = 'HKLM:\SOFTWARE\Microsoft\Windows\CurrentVersion\Uninstall\*'
$agent = Get-ItemProperty $entries | Where-Object { $_.PSObject.Properties['DisplayName'] -and
  $_.DisplayName -eq 'Venue agent' -and $_.PSChildName -like '{*}' }
if (-not $agent) { exit 0 }
$words = @('/x', $agent.PSChildName, '/qn', '/norestart')
if ($Purge) { $words += 'PURGE=1' }
exit (Start-Process msiexec.exe -ArgumentList $words -Wait -PassThru).ExitCode
