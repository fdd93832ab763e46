"""Goals that BAT OS gives itself: what is to be done without being asked."""
