"""Tools that the workspace offers; every tool has the same shape."""
