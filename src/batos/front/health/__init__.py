"""What is looked at to say whether all is well, and where each finding is explained."""
