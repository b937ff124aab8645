"""Move tenants and indexes between stores."""
