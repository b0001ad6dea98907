"""Tune kernels live: an agent rewrites typed schedules, guards judge them, people watch and steer.

Reading order for a stranger: ``model/`` (the candidate and its outcome), ``loop.py`` (one round, top to
bottom), one file of ``steps/``, then one plug-in of each kind. Importing this package does nothing.
"""

__version__ = "0.1.0"
