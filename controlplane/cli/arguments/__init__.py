"""What there is to type: the verbs, their options and how a value is read."""
