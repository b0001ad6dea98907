"""The nouns: frozen values that every other part passes around and that the journal stores.

Nothing here does I/O, imports another part of the package or keeps state, except ``history``: the fold of
the journal, which is the one mutable value and changes only through ``History.apply``.
"""
