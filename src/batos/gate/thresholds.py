"""The thresholds of the gate that were chosen by measuring; docs/thresholds.md has each with its spread over folds.

Modules read them here when they need them, so that bench/thresholds.py can try others.
"""

from __future__ import annotations

# Carrying: a sentence of the evidence carries a sentence of an answer. Shares are of the weight of words, by rarity.

#: The share of a sentence's new words that must be in the evidence.
NEW_SHARE = 0.7
#: The same for a sentence that is cited for a part of one that nothing carries.
PART_SHARE = 0.5
#: The share of the question's words that must stand in the evidence sentence too.
QUESTION_SHARE = 0.15
#: The same as a share of what the best sentence for the question's words alone has of them.
RELATIVE_SHARE = 0.35
#: The share of the question's words below which the question completes a sentence that comes first.
COMPLETE = 0.3
#: Times that new words count as much as the question's.
NEW_WEIGHT = 2
#: The part of the weight of the question's words that counts where they stand in the same document.
DOCUMENT_PART = 0.1
#: The weight that a sentence loses for each of its words, so that of two the shorter is preferred.
LENGTH_COST = 0.05
#: The share of the new words that each of two sentences has which carry one together.
PAIR_SHARE = 0.25
#: New words from which on two sentences can carry one together.
PAIR_WORDS = 4
#: The cosine of two vectors from which on the meaning of a sentence stands for its words.
ALIKE = 0.8

# Rivals: other dates, numbers and names in the sentence that carries.

#: The least lead of a date, a number or a name over its nearest rival, as a ratio of nearness.
LEAD = 0.4
#: Words of distance at which a word of the question counts half.
SCALE = 5
#: Words of distance that a mark between parts of a sentence stands for.
CLAUSE_DISTANCE = 2

# Weights of words, and what is cited for a clause.

#: Sentences that rarities are counted over at least. In a passage of five sentences a word that stands in one of them
#: would be worth a third of a word that stands in none, and among five hundred nine tenths.
LEAST_SENTENCES = 100
#: The part of the weight of a word that a sentence has which begins with a pronoun, if the sentence before it has the
#: word: the pronoun stands for something there.
PRONOUN_PART = 0.5
#: The part of the weight of two letters that counts if both are hiragana, which are mostly endings and particles.
HIRAGANA_PART = 0.25
#: Words in a row that are a copy of a part of a sentence.
COPIED_WORDS = 8
#: Words that say something, of the shortest clause; a shorter one belongs to the clause before it.
CLAUSE_WORDS = 3
#: The share of a sentence that a sentence has at least which is cited for a clause of it (docs/decisions/0045).
CLAUSE_SHARE = 0.35

# Alarms.

#: The share of a sentence's new words below which nothing speaks of it.
KNOWN_SHARE = 0.35
#: New words of the shortest sentence that is judged by them.
KNOWN_WORDS = 3
#: Sentences of a short answer, which is invented if all its new words are strange, however few they are.
SHORT_ANSWER = 2
#: The share of the question's words beside a value, of those at the best place for the question, below which it strays.
STRAY_SHARE = 0.6
#: Sentences before and after a value that are beside it.
STRAY_BESIDE = 1
#: New words of the longest sentence whose values are looked at: a longer one says things of several places together.
STRAY_WORDS = 6
#: Words that ask, in a question of the most things whose answer is looked at.
STRAY_QUESTIONS = 2
