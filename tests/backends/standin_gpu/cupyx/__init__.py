"""The stand-in's part of the library of this name."""
