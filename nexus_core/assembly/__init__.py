"""What one call of a model is put together from: kinds into zones, notices, cuts, placements, the shapes of APIs."""
