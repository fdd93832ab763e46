"""How people and programs speak to BAT OS: the command line."""
