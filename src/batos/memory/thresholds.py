"""The thresholds of memory that were chosen by measuring; docs/thresholds.md has each with its spread over folds.

Modules read them here when they need them, so that bench/thresholds.py can try others.
"""

from __future__ import annotations

# Focus: the sentences of passages that bear most on one question.

#: Sentences in focus, and at most, where more of them match about as well.
FOCUS_USUAL, FOCUS_MOST = 2, 4
#: The share of the best match that a sentence in focus has: small models read a fainter one into the answer.
FOCUS_FAINT = 0.3
#: The share of the weight of a question's words that the best sentence has at least: else nothing is in focus.
FOCUS_COVERED = 0.05
#: The share of the match before it that a further sentence has which comes into focus.
FOCUS_ALIKE = 0.9
#: The same among passages of which some were found to match less well: more sentences compete there.
FOCUS_ALIKE_FOUND = 0.8
#: The power of a passage's own weight by which its sentences match less well.
FOCUS_PASSAGE_POWER = 0.75
#: The part of a word's rarity that counts if the word is short and no number: such words say little in any language.
FOCUS_SHORT_PART = 0.25
#: Letters of the longest word that is short.
FOCUS_SHORT_LETTERS = 3
#: The part of a match that each word of a sentence costs, so that of two equal matches the shorter sentence is better.
FOCUS_LENGTH_COST = 0.05

# Recall: how near a part of memory must be to a question to be shown to a mission.

#: The share of the weight of a question's words that a part has at least, if it has no vector.
RECALL_COVERED = 0.34
#: The least mean of that share and of the cosine, if the part has a vector.
RECALL_ALIKE = 0.335
#: The share of these from which on a part is shown as perhaps about the matter, where nothing is nearer.
RECALL_PERHAPS = 0.6
#: The same for a later message of a talk of which something is near enough.
RECALL_LATER = 0.4
