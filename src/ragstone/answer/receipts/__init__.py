"""Receipts of answers: made when an answer is given, checked later against the live documents."""
