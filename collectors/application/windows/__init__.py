"""Reads the facts of Windows with PowerShell scripts that query CIM."""
