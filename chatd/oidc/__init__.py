"""Login by OpenID Connect: what a browser carries meanwhile, and what a provider is asked."""
