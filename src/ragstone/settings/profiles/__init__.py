"""Named sets of defaults, one YAML file each."""
