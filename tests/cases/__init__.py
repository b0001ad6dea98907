"""Acceptance cases: kinds of fault that people reported, shown on the whole product with real processes."""
