"""Feature selectors, one estimator a file."""
