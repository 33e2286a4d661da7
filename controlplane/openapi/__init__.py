"""What the service offers: its operations as rows, and the OpenAPI document made of them."""
