"""Texts as the gate reads them: languages, letters, stems and clauses."""
