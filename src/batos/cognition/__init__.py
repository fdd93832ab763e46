"""One mission from question to answer: routing, the state machine, its states, weaving and the gate."""
