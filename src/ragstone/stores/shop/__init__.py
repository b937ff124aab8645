"""The shop of a tenant in its ledger: products, services, appointments, and the settings of agents that use them."""
