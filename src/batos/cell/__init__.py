"""The cell: runs generated methods in worker processes that have nothing but what they are given."""
