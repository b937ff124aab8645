"""The JSON that programs rely on, one model for each shape, shared by `--json`, MCP and the agents' tools.

Fields may be added, never renamed. Counts are integers.
"""
