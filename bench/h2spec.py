#!/usr/bin/env python3
"""How HTTP/2 holds to its standard: h2spec at Plimsoll over TLS and without, and at nginx over TLS, in one run.

    GOBIN=$PWD/out go install github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible
    python3 bench/h2spec.py --plimsoll target/debug/plimsoll --h2spec out/h2spec

Prints how many of the tests each passes, and which it does not. It fails if Plimsoll passes fewer over TLS than nginx does, or fails
one there about frames, streams or fields (sections 4, 5 and 8 of RFC 7540, and HPACK).
"""

import argparse
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

import plimsoll_config
import proxies

BOTH_CORES = "0-1"
# Sections of the standard about frames, streams and fields, as h2spec names its suites.
STRICT = ("http2/4", "http2/5", "http2/6", "http2/8", "generic/3", "generic/4", "hpack/")


def ask(program, port, over_tls, report):
    """The tests of a run: name -> what was wrong, or None."""
    command = [program, "-h", "127.0.0.1", "-p", str(port), "-P", "/1k", "-o", "5", "-j", report] + (["-t", "-k"] if over_tls else [])
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if not os.path.exists(report):
        raise RuntimeError(f"h2spec has no report: {done.stdout[-500:]}{done.stderr[-500:]}")
    tests = {}
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        wrong = [child for child in case if child.tag in ("failure", "error")]
        name = f"{case.get('package')}: {case.get('classname')}"
        tests[f"{name} ({len(tests)})"] = " ".join("".join(wrong[0].itertext()).split()) if wrong else None
    return tests


def main():
    """Starts all of them, and asks each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plimsoll", required=True)
    parser.add_argument("--h2spec", required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="plimsoll-h2spec-") as folder:
        origin = proxies.start_origin(folder, BOTH_CORES)
        text = plimsoll_config.proxying(origin.address[1], 2).replace("[gateway]\n", "[gateway]\nh2c = true\n", 1)
        own = proxies.start_plimsoll(os.path.abspath(options.plimsoll), text, folder, 2, BOTH_CORES)
        nginx = proxies.start_nginx(folder, origin, 1, BOTH_CORES)
        try:
            secure = {server: int(server.secure_url.rsplit(":", 1)[1]) for server in (own, nginx)}
            ports = {"Plimsoll, TLS": (secure[own], True), "Plimsoll, h2c": (own.address[1], False), "nginx, TLS": (secure[nginx], True)}
            results = {}
            for number, (name, (port, over_tls)) in enumerate(ports.items()):
                results[name] = ask(options.h2spec, port, over_tls, os.path.join(folder, f"report{number}.xml"))
        finally:
            for server in (own, nginx, origin):
                server.stop()
    passed = {name: sum(wrong is None for wrong in tests.values()) for name, tests in results.items()}
    for name, tests in results.items():
        print(f"{name}: {passed[name]} of {len(tests)}")
        for test, wrong in tests.items():
            if wrong is not None and name != "nginx, TLS":
                print(f"    {test}: {wrong[:200]}")
    strict = [test for test, wrong in results["Plimsoll, TLS"].items() if wrong is not None and test.startswith(STRICT)]
    sys.exit(0 if passed["Plimsoll, TLS"] >= passed["nginx, TLS"] and not strict else 1)


if __name__ == "__main__":
    main()
