"""How a report is shown to people: one set of words, a terminal view and a web page."""
