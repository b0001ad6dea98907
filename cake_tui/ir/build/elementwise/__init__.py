"""Structures of the elementwise family: each output element is an expression of inputs at its own place."""
