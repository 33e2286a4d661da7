"""A small OpenID provider in a process of its own, which tests can make hostile."""
