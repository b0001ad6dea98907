"""Tests of the process around the loop."""
