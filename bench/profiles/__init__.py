"""Every profile on its own store with its own kind of models, measured on labelled data: `make profiles`."""
