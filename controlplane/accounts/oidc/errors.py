"""Errors of a sign-in with an identity provider: one class for each way of handling them."""


class ProviderError(Exception):
    """A sign-in with a provider failed. The message names the cause for users."""


class ProviderUnavailableError(ProviderError):
    """The provider did not send a usable answer. The same call may succeed later."""


class ProviderRefusedError(ProviderError):
    """The provider refused, or its answer is not trusted. The sign-in or session ends."""
