"""The service: everything a workspace does, over HTTP, for many tenants at once."""
