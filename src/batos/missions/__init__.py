"""Missions: accepted, queued, run, recovered and reported."""
