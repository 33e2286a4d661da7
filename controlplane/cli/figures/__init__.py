"""``venue-control figures``: the sales figures of a merchant."""
