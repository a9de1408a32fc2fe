"""What takes the place of an earlier conversation: which part of it, in whose words, and what must not get lost."""
