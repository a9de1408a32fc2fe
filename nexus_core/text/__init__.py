"""Safe text: what may reach a terminal, and the one console through which it gets there."""
