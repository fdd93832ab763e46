"""What a verb speaks to, a server or the image itself, and a mission that is waited for there."""
