"""Files and folders, archives inside them, and watching for changes."""
