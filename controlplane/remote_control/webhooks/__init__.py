"""What others are told of by themselves: reports, and what changed in the fleet."""
