"""The facts of Windows, from PowerShell scripts that query CIM."""
