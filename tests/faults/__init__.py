"""Faults on purpose: processes are killed, stopped and cut off, and a checker judges what they left behind.

Producers, worker hosts and handlers write down each action before and after it (``history``). A nemesis does the harm
(``nemesis``, ``proxy``). At the end everything is healed and drained, the final state is read three ways (``stage``),
and ``checker`` searches histories and state for anything that the guarantees forbid. ``seeded_bugs`` proves that it
bites.
"""
