"""Generated code of the wire contract: see generate.py."""
