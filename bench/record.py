"""A run that is kept: the table, the raw figures, and what is needed to judge them: command, commit, machine."""

import json
import os
import platform
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def _output(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=HERE, check=False)
    except FileNotFoundError:
        return "missing"
    return (done.stdout + done.stderr).strip()


def _first_number(text):
    found = re.search(r"\d+\.\d+(\.\d+)?", text)
    return found.group(0) if found else "?"


def machine():
    """One line: processor, cores, kernel, versions of the peers."""
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        model = re.search(r"model name\s*: (.*)", file.read())
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    os.environ["PATH"] = path
    return (
        f"{model.group(1) if model else platform.machine()}, {os.cpu_count()} cores, Linux {platform.release().split('-')[0]}, "
        f"nginx {_first_number(_output('nginx', '-v'))}, HAProxy {_first_number(_output('haproxy', '-v'))}, "
        f"wrk {_first_number(_output('wrk', '-v'))}, TCP {_congestion_control()}"
    )


def _congestion_control():
    with open("/proc/sys/net/ipv4/tcp_congestion_control", encoding="ascii") as file:
        return file.read().strip()


def keep(text, cases, rows, skipped):
    """Writes bench/runs/<time>/ and returns its path."""
    commit = _output("git", "rev-parse", "--short", "HEAD")
    if _output("git", "status", "--porcelain", "--untracked-files=no"):
        commit += " and uncommitted changes"
    folder = os.path.join(HERE, "runs", time.strftime("%Y-%m-%d-%H%M%S", time.gmtime()))
    os.makedirs(folder)
    command = "python3 bench/bench.py " + " ".join(_relative(argument) for argument in sys.argv[1:])
    with open(os.path.join(folder, "README.md"), "w", encoding="utf-8") as file:
        file.write(f"# A run of make bench\n\n- command: `{command}`\n- commit: {commit}\n- machine: {machine()}\n\n```\n{text}\n```\n")
    raw = {
        "cases": [{"name": case.name, "figure": case.figure, "values": case.values} for case in cases],
        "beside": rows,
        "skipped": skipped,
    }
    with open(os.path.join(folder, "raw.json"), "w", encoding="utf-8") as file:
        json.dump(raw, file, indent=1)
    return os.path.relpath(folder)


def _relative(argument):
    return os.path.relpath(argument, os.path.dirname(HERE)) if os.path.isabs(argument) else argument
