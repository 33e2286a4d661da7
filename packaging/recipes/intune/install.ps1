# The install command of an Intune app (Win32). Put this file, the MSI and the key in api-key.txt into
# one directory, and pack it with IntuneWinAppUtil. Install command:
#   powershell.exe -NoProfile -ExecutionPolicy Bypass -File install.ps1 https://ops.example.com loc-0001
param(
  [Parameter(Mandatory)][uri]$BaseUrl,
  [Parameter(Mandatory)][ValidatePattern('^[A-Za-z0-9_.-]+$')][string]$LocationId
)
$ErrorActionPreference = 'Stop'
$package = (Get-Item "$PSScriptRoot\venue-agent-*.msi").FullName
$arguments = @(
  '/i', "`"$package`"", '/qn', '/norestart', '/l*v', "`"$env:SystemRoot\Logs\venue-agent-msi.log`"",
  "BASE_URL=`"$($BaseUrl.AbsoluteUri.TrimEnd('/'))`"", "LOCATION_ID=`"$LocationId`"",
  "API_KEY_FILE=`"$PSScriptRoot\api-key.txt`""
)
exit (Start-Process msiexec.exe -ArgumentList $arguments -Wait -PassThru).ExitCode
