"""The endpoints of OAuth, and the two pages that people see."""
