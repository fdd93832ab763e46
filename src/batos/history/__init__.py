"""The history of the image: asking it as it was, and where what it says came from."""
