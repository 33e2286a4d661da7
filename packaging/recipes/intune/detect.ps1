# The detection script of an Intune app (Win32). Intune counts the app as installed if the exit code is
# 0 and there is output. Set $required to the version of the MSI.
$required = [version]'0.0.0'
$entries = 'HKLM:\SOFTWARE\Microsoft\Windows\CurrentVersion\Uninstall\*'
$agent = Get-ItemProperty $entries -ErrorAction SilentlyContinue |
  Where-Object { $_.DisplayName -eq 'Venue agent' -and $_.PSChildName -like '{*}' }
$service = Get-Service venue-agent -ErrorAction SilentlyContinue
if ($agent -and [version]$agent.DisplayVersion -ge $required -and $service.StartType -eq 'Automatic') {
  Write-Output "Venue agent $($agent.DisplayVersion)"
  exit 0
}
exit 1
