"""The shop of a tenant, wherever it is kept."""
