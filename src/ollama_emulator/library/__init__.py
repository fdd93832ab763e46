"""Store models as the daemon does: names, blobs, manifests, and converted files."""
