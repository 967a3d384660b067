"""The printed table: medians, and the ratio to the better of the two peers with its interval."""

from statistics import median

from figures import bootstrap_interval, present, ratios

PROXIES = ("plimsoll", "nginx", "haproxy")
UNITS = {"cpu": "us of CPU", "p99": "ms"}


def _median(case, proxy):
    values = present(case.values.get(proxy, []))
    return median(values) if values else None


def better_peer(case):
    """The peer with the lower median, or None."""
    measured = [(value, peer) for peer in PROXIES[1:] if (value := _median(case, peer)) is not None]
    return min(measured)[1] if measured else None


def ratio_to(case, peer):
    """(median ratio, low, high) over the rounds, or None."""
    found = ratios(case.values.get("plimsoll", []), case.values.get(peer, []))
    return (median(found), *bootstrap_interval(found)) if found else None


def _number(value, digits=1):
    return "-" if value is None else f"{value:.{digits}f}"


def _row(name, cells, rest=""):
    return f"{name:<42}" + "".join(f"{cell:>10}" for cell in cells) + ("   " + rest if rest else "")


def render(cases, rows, skipped, machine):
    """The whole report as text."""
    lines = [machine, "", _row("median per request", PROXIES, "ratio to the better peer [95 % interval]")]
    for case in cases:
        digits = 2 if case.figure == "p99" else 1
        cells = [_number(_median(case, proxy), digits) for proxy in PROXIES]
        peer = better_peer(case)
        ratio = ratio_to(case, peer) if peer else None
        rest = f"{ratio[0]:.2f} [{ratio[1]:.2f}, {ratio[2]:.2f}] of {peer}" if ratio else ""
        lines.append(_row(f"{case.name} ({UNITS[case.figure]})", cells, rest))
    rejection, proxied = cases[2], cases[0]
    shares = ratios(rejection.values.get("plimsoll", []), proxied.values.get("plimsoll", []))
    if shares:
        low, high = bootstrap_interval(shares)
        lines.append(_row("503 / 1 KB proxied, plimsoll", [f"{median(shares):.2f}", "", ""], f"[{low:.2f}, {high:.2f}]"))
    lines += [_row(row["name"], [_number(row.get(proxy)) for proxy in PROXIES]) for row in rows]
    if skipped:
        lines += ["", "skipped:"] + [f"  {line}" for line in dict.fromkeys(skipped)]
    return "\n".join(lines)
