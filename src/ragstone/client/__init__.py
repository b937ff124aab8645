"""The service from Python: the methods of a `Workspace` over HTTP, with and without async."""
