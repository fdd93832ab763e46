"""The models that the daemon has: names, blobs, manifests, and files written anew."""
