"""The Persistence Covenant by data flow: the objects that may be changed on each path, and if each is marked."""
