"""The workspace daemon: desktops, tools and context for agents, behind one link."""
