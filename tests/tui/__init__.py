"""Tests of the viewer: pilot, pty and pyte, pictures."""
