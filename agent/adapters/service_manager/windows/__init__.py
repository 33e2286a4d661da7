"""The agent under the Windows service control manager."""
