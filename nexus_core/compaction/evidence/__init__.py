"""What a summary must not lose, found without a model.

shapes      paths, links, identifiers, numbers and errors, told by how they look in a text
calls       files and commands, told from calls of tools
facts       facts of messages; of several compactions together; the most important first; as JSON
words       what the user said, word for word, as far as there is room
rendering   facts as a block of text
"""
