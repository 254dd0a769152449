"""Tools of the control plane, and the set that each kind of chat gets."""
