"""What waits for a person: asked, shown, answered, and what an answer sets going again."""
