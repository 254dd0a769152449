"""Web push: tells people's browsers that a chat wants them, also while no page is open."""
