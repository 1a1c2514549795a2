"""Constants derived again from what was published: of the ledger, of the roofline, of step times."""
