"""What a secret is, and text without any. Pure but for `places`, which reads where secrets lie."""
