"""Large data: how time and peak memory grow with it."""
