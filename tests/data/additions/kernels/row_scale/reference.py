"""The value in float64 and the size that its rounding errors are measured in."""


def reference(xp, x, s):
    """Return the scaled rows; one rounding, of the product."""
    return x * s[:, None], abs(x) * abs(s)[:, None]
