"""Desktops that can be seen and touched: canonical actions, drivers, sessions."""
