"""Algorithms on arrays and operators; no estimator in sight."""
