"""Life and death of methods: how each is chosen, counted, judged and retired, and what a person may do with it."""
