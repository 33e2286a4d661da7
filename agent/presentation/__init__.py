"""Shows reports to users: common rows and texts, a terminal view and a web page."""
