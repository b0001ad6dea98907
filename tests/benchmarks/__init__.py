"""Benchmarks print figures and keep them with machine, commit and date; none of them is a test."""
