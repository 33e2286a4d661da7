"""What a person sees and is asked: lists, progress, questions."""
