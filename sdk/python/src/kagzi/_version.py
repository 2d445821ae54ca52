"""The version of the SDK."""

__version__ = "0.1.0"

SDK_CAPABILITY = "sdk:python"  # names the language to people and to requirements of runs (PROTOCOL.md, §1.8)
_MOST = 1024


def with_sdk(capabilities: dict[str, str]) -> dict[str, str]:
    """Returns capabilities with the SDK among them, unless there is no room for one more."""
    if len(capabilities) >= _MOST:
        return capabilities
    return capabilities | {SDK_CAPABILITY: __version__}
