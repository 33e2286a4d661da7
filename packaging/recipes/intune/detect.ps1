# The detection script of an Intune app (Win32). Intune counts the app as installed if the exit code is
# 0 and there is output. Set $required to the version of the MSI.
$required = [version]'0.0.0'
$machine = [Microsoft.Win32.RegistryKey]::OpenBaseKey('LocalMachine', 'Registry64')
$entries = $machine.OpenSubKey('SOFTWARE\Microsoft\Windows\CurrentVersion\Uninstall')
$agent = $entries.GetSubKeyNames() | Where-Object { $_ -like '{*}' } |
  ForEach-Object { $entries.OpenSubKey($_) } |
  Where-Object { $_.GetValue('DisplayName') -eq 'Venue agent' } | Select-Object -First 1
$service = Get-Service venue-agent -ErrorAction SilentlyContinue
if ($agent -and $service -and [version]$agent.GetValue('DisplayVersion') -ge $required) {
  Write-Output "Venue agent $($agent.GetValue('DisplayVersion'))"
  exit 0
}
exit 1
