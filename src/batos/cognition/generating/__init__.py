"""How an intent becomes a method: what is asked of the coder, how its reply is tried, and what it may cost."""
