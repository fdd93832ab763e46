"""From a request to the prompt that is read and the words that are said."""
