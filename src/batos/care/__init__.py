"""Care of the image: it is verified and repaired, backed up and restored, and kept at a bounded size."""
