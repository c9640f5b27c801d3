"""The engine against a plain dictionary: Hypothesis draws verbs, crashes, clock jumps and restarts, both must agree."""
