"""Agency: what the mind may do in the world, through granted capabilities, after a commit, and never twice."""
