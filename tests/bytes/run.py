#!/usr/bin/env python3
"""Checks that a change of the code keeps all outputs: runs the command lines of cases.txt and prints hashes of each run.

    tests/bytes/run.py PROGRAM [--device cpu|gpu|both] [--only REGEX] [--jobs N] > hashes.txt
    tests/bytes/run.py --compare A B

Each run prints one line: id, exit code, hash of standard output, hash of standard error, NAME=HASH of each new file, `:`,
command line. Hashes are the first 16 digits of SHA-256; `-` stands for no bytes. The id is a hash of the command line. Two
programs behave the same if their lines are equal. --compare lists the runs whose lines differ, grouped by the difference.

Some texts are masked because they may change while results stay the same: the folder of the run, the commit in the version,
the times of inputs and the parameters in the files that record finished work, and the hash of a job in `OUT.shards-*`. Part
files are readable only by the version that wrote them, so only their existence is compared.
"""

import argparse
import concurrent.futures
import hashlib
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # This folder is in the repository.

import cases
import inputs

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
TIMEOUT_SECONDS = 120


def short_hash(data):
    return hashlib.sha256(data).hexdigest()[:16] if data else "-"


class Runner:
    """Runs command lines in new folders below `work`, which also contains the inputs."""

    def __init__(self, program, work, keep):
        self.work, self.keep = work, keep
        for name in ("bin", "home", "tmp", "runs"):
            (work / name).mkdir()
        (work / "bin/gpuproc").symlink_to(program)
        version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
        commit = re.search(r" \([0-9a-f]+\)", version)
        self.masks = [(re.escape(str(work).encode()), b"WORK"), (rb"\.shards-[0-9a-f]{16}", b".shards-JOB")]
        if commit:
            self.masks.append((re.escape(commit[0].encode()), b""))

    def masked(self, data):
        for pattern, name in self.masks:
            data = re.sub(pattern, name, data)
        if data.startswith(b"gpuproc part "):
            return b"part"
        if b'"parameters":"' in data:
            data = re.sub(rb'"parameters":"(?:[^"\\]|\\.)*"', b'"parameters":""', data)
            data = re.sub(rb'"modified":\d+', b'"modified":0', data)
        return data

    def outputs(self, folder):
        """Lists NAME=HASH of all files, and NAME/ of empty folders."""
        found = []
        for parent, folders, names in os.walk(folder):
            folders[:] = sorted(name for name in folders if not os.path.islink(os.path.join(parent, name)))
            place = os.path.relpath(parent, folder)
            if not folders and not names and place != ".":
                found.append(f"{place}/")
            for name in names:
                path = os.path.join(parent, name)
                with open(path, "rb") as file:
                    found.append(f"{os.path.normpath(os.path.join(place, name))}={short_hash(self.masked(file.read()))}")
        return [self.masked(name.replace(" ", "%20").encode()).decode() for name in sorted(found)]

    def run(self, script, device, move_to=None):
        """Runs a command line and returns its line of hashes. Outputs are moved to `move_to` if later runs read them."""
        name = (re.search(r"gpuproc (?:-- )?(\w+)", script) or [0, "gpuproc"])[1]
        name = f"{name}-{short_hash(script.encode())[:10]}" + ("@gpu" if device == "gpu" else "")
        folder = self.work / "runs" / name
        folder.mkdir()
        (folder / "in").symlink_to(self.work / "in")
        environment = {"PATH": f"{self.work}/bin:/usr/bin:/bin", "HOME": f"{self.work}/home", "TMPDIR": f"{self.work}/tmp",
                       "LC_ALL": "C.UTF-8", "TERM": "dumb", "GPUPROC_DEVICE": device}
        streams = [self.work / "runs" / f"{name}.{stream}" for stream in ("stdout", "stderr")]
        with open(streams[0], "wb") as stdout, open(streams[1], "wb") as stderr:
            try:
                code = subprocess.run(["bash", "--norc", "-o", "pipefail", "-c", script], cwd=folder, env=environment,
                                      stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, timeout=TIMEOUT_SECONDS).returncode
            except subprocess.TimeoutExpired:
                code = "timeout"
        hashes = [short_hash(self.masked(stream.read_bytes())) for stream in streams]
        line = " ".join([name, str(code), *hashes, *self.outputs(folder), ":", script])
        (folder / "in").unlink()
        if move_to:
            for path in folder.iterdir():
                path.rename(move_to / path.name)
        if not self.keep:
            shutil.rmtree(folder)
            for stream in streams:
                stream.unlink()
        return line


def run_all(options):
    """Writes the inputs, runs all command lines and prints their hashes."""
    work = pathlib.Path(tempfile.mkdtemp(prefix="gpuproc-bytes-"))
    start = time.time()
    try:
        inputs.write(work / "in", REPOSITORY)
        runner = Runner(os.path.abspath(options.program), work, options.keep)
        print("inputs 0 - -", short_hash(repr(runner.outputs(work / "in")).encode()), ": write the inputs")
        made = work / "in/made"
        made.mkdir()
        listed = cases.Cases(work / "in")
        for script in listed.to_make():
            line = runner.run(script, "cpu", made)
            print(line)
            if line.split(" ")[1] != "0":
                print(f"cannot create an input: {line}", file=sys.stderr)
        before = runner.outputs(work / "in")
        chosen = listed.to_run()
        jobs = []
        for device in ("cpu", "gpu") if options.device == "both" else (options.device,):
            jobs += [(script, device) for script, on_gpu in chosen
                     if (on_gpu or device == "cpu") and re.search(options.only, script)]
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for number, line in enumerate(pool.map(lambda job: runner.run(*job), jobs), 1):
                print(line, flush=True)
                if sys.stderr.isatty():
                    print(f"\r{number} of {len(jobs)}", end="\r", file=sys.stderr)
        print(f"{len(jobs)} runs, {time.time() - start:.0f} s", file=sys.stderr)
        if changed := sorted(set(before) ^ set(runner.outputs(work / "in"))):
            print("inputs changed during the runs:", *changed, file=sys.stderr)
        report_flags(options.program, [script for script, _ in chosen])
    finally:
        if options.keep:
            print(f"kept: {work}", file=sys.stderr)
        else:
            shutil.rmtree(work)


def all_flags(program, command):
    """Reads the flags of a command from its help. Returns the spellings and the possible values of each."""
    text = subprocess.run([program, *command, "--help"], capture_output=True, text=True, check=True).stdout
    flags = []
    for paragraph in re.split(r"\n(?=\s+(?:-\w, )?--\w|\s+-\w, --)", text):
        found = re.match(r"\s+(?:(-\w), )?(--[\w-]+)", paragraph)
        if found:
            listed = re.search(r"\[possible values: ([^\]]*)\]", paragraph)
            values = re.split(r",\s+", listed[1]) if listed else re.findall(r"\n +- (\S+?):? ", paragraph)
            flags.append(([name for name in found.groups() if name], values))
    return flags


def parse_calls(script):
    """Returns the command and the arguments of each call of gpuproc in a command line."""
    lexer = shlex.shlex(script, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    words, found = list(lexer), []
    for start, word in enumerate(words):
        if word == "gpuproc":
            rest = words[start + 1 :]
            end = next((i for i, word in enumerate(rest) if set(word) <= set("();<>|&")), len(rest))
            at = next((i for i, word in enumerate(rest[:end]) if word in cases.COMMANDS), end)
            found.append(("", rest[:at]))
            found.append((rest[at] if at < end else "", rest[at + 1 : end]))
    return found


def report_flags(program, scripts):
    """Prints the flags, and the possible values of flags, that no command line uses."""
    words = {}
    for script in scripts:
        for command, rest in parse_calls(script):
            used = words.setdefault(command, set())
            for word, following in zip(rest, [*rest[1:], ""]):
                name, _, value = word.partition("=")
                used |= {name, *(f"{name} {part}" for part in (value or following).split(","))}
    missing, flags = [], 0
    for command in ["", *cases.COMMANDS]:
        if command in cases.EXCEPTIONS or command == "help":
            continue
        used = words.get(command, set())
        for spellings, values in all_flags(program, [command] if command else []):
            flags += 1
            missing += [f"{command} {name}" for name in spellings if name not in used]
            missing += [f"{command} {spellings[-1]} {value}" for value in values
                        if not any(f"{name} {value}" in used for name in spellings)]
    reasons = ", ".join(f"{command} ({reason})" for command, reason in cases.EXCEPTIONS.items())
    print(f"{flags} flags, without {reasons}; not used: {', '.join(missing) or 'none'}", file=sys.stderr)


def read_lines(file):
    """Reads a file of hashes. Returns a dictionary from ids to exit code, hashes of both streams and of files, and command
    line."""
    runs = {}
    for line in open(file, encoding="utf-8"):
        head, _, script = line.rstrip("\n").partition(" : ")
        name, code, stdout, stderr, *files = head.split(" ")
        runs[name] = ({"exit code": code, "stdout": stdout, "stderr": stderr, "files": files}, script)
    return runs


def compare(first, second):
    """Lists the runs that differ, grouped by the difference. Returns the exit code."""
    a, b = read_lines(first), read_lines(second)
    groups = {}
    for name in [*a, *(name for name in b if name not in a)]:
        if name not in a or name not in b:
            groups.setdefault(f"only in {first if name in a else second}", []).append((name, ""))
            continue
        old, new = a[name][0], b[name][0]
        parts = [part for part in old if old[part] != new[part]]
        if parts:
            details = [f"exit code {old['exit code']} -> {new['exit code']}"] if "exit code" in parts else []
            files = sorted({file.partition("=")[0] for file in set(old["files"]) ^ set(new["files"])})
            if files:
                details.append("files " + " ".join(files[:6]) + (f" and {len(files) - 6} more" if len(files) > 6 else ""))
            groups.setdefault(", ".join(parts), []).append((name, "; ".join(details)))
    for group, members in sorted(groups.items()):
        print(f"{group}: {len(members)} runs")
        for name, details in members:
            print(f"  {name}  {(a.get(name) or b[name])[1]}" + (f"\n      {details}" if details else ""))
    print(f"{len(set(a) & set(b))} runs compared, {sum(map(len, groups.values()))} differ")
    return 1 if groups else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", help="the gpuproc to run")
    parser.add_argument("--device", choices=["cpu", "gpu", "both"], default="cpu",
                        help="device to run on; gpu runs only the command lines marked with * [default: cpu]")
    parser.add_argument("--only", default="", metavar="REGEX", help="run only command lines that match REGEX")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="number of parallel runs [default: 2]")
    parser.add_argument("--keep", action="store_true", help="keep the folders of the runs")
    parser.add_argument("--compare", nargs=2, metavar=("A", "B"), help="compare two files of hashes and run nothing")
    options = parser.parse_args()
    if options.compare:
        sys.exit(compare(*options.compare))
    if not options.program:
        parser.error("PROGRAM is missing")
    run_all(options)


if __name__ == "__main__":
    main()
