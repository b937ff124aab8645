"""Mail messages: headers, parts, quoted replies."""
