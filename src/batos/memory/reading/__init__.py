"""Reading: files of any known kind become texts, all but plain text in a process of its own with limits."""
