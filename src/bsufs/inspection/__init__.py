"""What a selection holds: explained, drawn, and told on one page."""
