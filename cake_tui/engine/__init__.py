"""The process around the loop: detach, locks, journal, requests, heartbeat, signals, gaps, full disks, endings.

``process`` starts it, ``opening`` makes or reopens its session, ``drive`` runs the loop inside it, ``desk``
decides about requests, ``heartbeat`` shows that it lives, ``voice`` is all it says to people.
"""
