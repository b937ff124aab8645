"""Words everybody shares: types, seams, errors, filters, settings. No I/O happens here."""
