"""A corpus file as a whole becomes a collection: built beside the one that there is, and swapped in when complete."""
