"""Values in a text: numbers, dates and spans of time in any notation, and sums of them."""
