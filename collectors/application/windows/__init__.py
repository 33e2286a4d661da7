"""The facts of Windows by CIM, read in one PowerShell script."""
