"""The verbs, declared: one file a noun, with arguments, reply, rights and text of each; no database is loaded here."""
