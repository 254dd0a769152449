"""What instructions and skills a workspace has: found, watched, and pushed to the control plane."""
