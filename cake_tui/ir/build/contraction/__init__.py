"""Structures of the contraction family: a[m, k] * b[k, n] summed over k, then an expression of the sum."""
