"""Pure functions from a census and an expectation to a finding."""
