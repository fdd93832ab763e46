"""The command line: verbs, what they print, the doors to an image, and the doctor."""
