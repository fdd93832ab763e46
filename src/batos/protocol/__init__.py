"""All that crosses a door, typed: brief, arguments of verbs, documents of replies, payloads of events, errors."""
