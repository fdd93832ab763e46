"""Claims: statements of facts, turns and documents, and which of them still holds."""
