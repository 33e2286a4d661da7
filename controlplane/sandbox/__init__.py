"""A generated merchant with every unusual case for figures. Equal seeds give equal merchants."""
