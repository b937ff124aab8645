"""Background work: workers, leases, fairness between tenants, schedules and syncs."""
