"""Everything an agent is given: each tool once, and its forms for the frameworks."""
