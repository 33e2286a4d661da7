"""What a merchant sold, in numbers, on a terminal."""
