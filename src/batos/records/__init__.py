"""Records that many rooms read: methods and their uses, tools, wishes, approvals, what was withdrawn or erased."""
