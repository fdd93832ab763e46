"""Generate deterministic texts in place of a model: answers, embeddings and log probabilities."""
