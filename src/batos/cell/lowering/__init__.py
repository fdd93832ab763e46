"""Lowering: what good methods use and the interpreter lacks, said in what it has."""
