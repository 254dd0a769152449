"""Workspaces that are connected over the link, seen from the control plane."""
