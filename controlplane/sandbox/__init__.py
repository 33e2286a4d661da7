"""A merchant that was made up, by seed, with every awkward case that figures must survive."""
