"""Texts as the gate reads them: languages and stems."""
