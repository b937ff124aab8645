"""The facade: `Engine` is the operator's side, a `Workspace` everything that is done for one tenant."""
