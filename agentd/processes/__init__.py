"""
Commands of the workspace, which outlive the call that started them.

A process of its own, the *keeper*, starts and holds them, so that a daemon which is killed and
started again finds them where they were.
"""
