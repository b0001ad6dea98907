"""Structures of the reduction family: map(x[r, c]) combined over c, then an expression of what that gives."""
