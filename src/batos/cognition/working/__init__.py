"""Working: missions accepted, queued, begun, held, settled after a crash, folded in and counted."""
