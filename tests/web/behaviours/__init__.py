"""One small function per way a host may behave; see tests/web/__init__.py."""
