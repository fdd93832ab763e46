"""Files of the image: the file storage with its index and quota, a torn end, and the files that missions keep."""
