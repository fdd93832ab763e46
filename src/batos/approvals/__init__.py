"""Approvals: candidates that wait for a person, the answers, and the missions that wait for them."""
