"""Evolution of the image: ordered steps that bring what an older version wrote into the present form."""
