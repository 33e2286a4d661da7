"""What Windows tells by CIM, asked in one PowerShell script."""
