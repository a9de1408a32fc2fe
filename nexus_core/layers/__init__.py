"""From a request to the layers on disk, their texts, and the sections those become."""
