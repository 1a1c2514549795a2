"""Pure arithmetic: values in, values out; no I/O, no clock, no framework."""
