"""Screens over the panes: the key table, the inject dialog, exact JSON, a question."""
