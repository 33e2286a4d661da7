"""Support (contract: Support): its channels, and links between organizations and chats."""
