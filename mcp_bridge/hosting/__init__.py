"""Processes, connections and their lives; the only part of the bridge that touches the world."""
