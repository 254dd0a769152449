"""What travels: resources, hashes, safe text, the push; all that the control plane sees of this package."""
