"""The verbs of the command line, each a module that is loaded when it is called."""
