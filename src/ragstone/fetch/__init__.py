"""The way out: guarded fetching of addresses that users and documents give, and calls to services of the operator's."""
