"""Plimsoll's configurations for the benchmark: control on, nothing in the way."""


def proxying(origin_port, threads):
    """Control on with room to spare: every request is measured, classified and admitted at full level."""
    return ""


def refusing(origin_port):
    """A load line of nearly nothing."""
    return ""
