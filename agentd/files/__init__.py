"""Files of the workspace: reading by lines, whole writes, and edits by matching text."""
