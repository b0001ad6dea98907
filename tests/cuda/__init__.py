"""Tests that need an NVIDIA GPU, and what they recorded for machines without one."""
