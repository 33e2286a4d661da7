"""A merchant's rows: sales and refunds written together with the sums over them."""
