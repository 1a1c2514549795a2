"""Step times: kernels that somebody measured, or the roofline where nobody has."""
