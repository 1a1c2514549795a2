"""Asks other services that the operator named: pinned to one address, in little time, of little size."""
