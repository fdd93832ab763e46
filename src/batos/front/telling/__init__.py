"""What people and programs are told: the console, the log, progress, missions."""
