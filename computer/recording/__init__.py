"""
Recordings of a desktop: a process of its own writes a fragmented MP4.

``process.Recorder`` starts and stops it; ``finish`` speeds the still parts up afterwards. Nothing but
``encoder`` and ``finish`` imports the video library, and only the recorder's own process
imports those two.
"""
