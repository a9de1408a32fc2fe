"""The frozen values that every other module speaks in. They do no I/O and raise only ValueError."""
