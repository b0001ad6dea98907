"""Exports: what the file says, that it compiles and checks by itself, and that a changed one is found out."""
