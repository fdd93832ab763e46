"""The verb `chat`: its session, its slash commands, and the reading of what is typed."""
