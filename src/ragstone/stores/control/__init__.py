"""Tenants, quotas and the audit record."""
