"""From sections to text."""
