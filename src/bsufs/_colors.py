"""Colors of what is drawn, told apart by the color-blind and in grey (Okabe and Ito)."""

INK = "#1b2a34"
MUTED = "#66737d"
GRID = "#dde3e8"
KEPT = "#d55e00"
LEFT_OUT = "#8fa3b3"
BOUND = "#0072b2"
# From -1 over 0 to 1; vermilion and blue are as dark as each other.
DIVERGING = ("#0072b2", "#f7f7f7", "#d55e00")
