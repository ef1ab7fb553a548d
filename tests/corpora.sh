#!/usr/bin/env bash
# Runs every command over the bad-input corpora of Debian source packages: thousands of pictures, many of
# them broken on purpose.
#
#   tests/corpora.sh [--fetch FOLDER] [--program PATH] [--jobs N] [FOLDER]
#   tests/corpora.sh --peers FOLDER [--program PATH]
#
# --peers FOLDER compares pixels and world coordinates of the test files of libraries with these: see corpora_peers.py.
# --fetch FOLDER brings the packages there through apt, from the archives that this machine's apt already
# uses, without touching apt's own state (Debian and Ubuntu; needs apt-get and python3).
# A run fails when the program panics, dies of a signal, runs into the time limit, exits with a code that
# is not documented, says anything but one line, takes more memory than allowed, or leaves an output behind.
# Exits 0 when nothing failed; prints a table either way.
set -euo pipefail
cd "$(dirname "$0")/.."

# PngSuite with 114 broken files; crashers of libpng; the test pictures of three libraries.
packages=(png-sixlegs libpng1.6 pillow gdk-pixbuf vips)

folder=/tmp/gpuproc-corpora
program=target/release/gpuproc
jobs=2
fetch=
peers=
while [ $# -gt 0 ]; do
    case $1 in
    --fetch) fetch=1 folder=$2 && shift 2 ;;
    --peers) peers=1 folder=$2 && shift 2 ;;
    --program) program=$2 && shift 2 ;;
    --jobs) jobs=$2 && shift 2 ;;
    -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" && exit ;;
    *) folder=$1 && shift ;;
    esac
done

fetch_packages() {
    mkdir -p "$folder"
    local state
    state=$(mktemp -d)
    mkdir -p "$state"/{lists/partial,cache/archives/partial,sources}
    # The binary archives that are configured here, asked for their sources.
    local file
    for file in /etc/apt/sources.list.d/debian*.sources /etc/apt/sources.list.d/ubuntu*.sources; do
        if [ -e "$file" ]; then sed 's/^Types:.*/Types: deb-src/' "$file" >"$state/sources/${file##*/}"; fi
    done
    if [ -e /etc/apt/sources.list ]; then
        sed -n 's/^deb /deb-src /p' /etc/apt/sources.list >"$state/sources/main.list"
    fi
    local apt=(apt-get -qq -o "Dir::State::Lists=$state/lists" -o "Dir::Cache=$state/cache"
        -o "Dir::Etc::SourceList=/dev/null" -o "Dir::Etc::SourceParts=$state/sources"
        -o APT::Sandbox::User=root)
    "${apt[@]}" update
    local package
    for package in "${packages[@]}"; do
        [ -e "$folder/$package.done" ] && continue
        rm -rf "${folder:?}/$package"
        mkdir "$folder/$package"
        (cd "$folder/$package" && "${apt[@]}" source --download-only --tar-only "$package")
        tar -xf "$folder/$package/"*.orig.tar.* -C "$folder/$package"
        rm -f "$folder/$package/"*.orig.tar.* "$folder/$package/"*.asc
        touch "$folder/$package.done"
    done
    rm -rf "$state"
    # What lies in archives inside the sources: test pictures are often shipped so.
    find "$folder" -type f \( -name '*.zip' -o -name '*.tar.gz' -o -name '*.tgz' \) -size -40M -path '*/*/*' |
        while read -r archive; do
            mkdir -p "$archive.unpacked"
            python3 -m zipfile -e "$archive" "$archive.unpacked" 2>/dev/null ||
                tar -xf "$archive" -C "$archive.unpacked" 2>/dev/null || true
        done
}

if [ -n "$peers" ]; then
    mkdir -p "$folder"
    exec python3 tests/corpora_peers.py "$folder" "$(realpath "$program")"
fi
if [ -n "$fetch" ]; then fetch_packages; fi
exec python3 - "$folder" "$program" "$jobs" <<'PYTHON'
import os, resource, shutil, signal, subprocess, sys, tempfile, time
from concurrent.futures import ThreadPoolExecutor

folder, program, jobs = sys.argv[1], os.path.abspath(sys.argv[2]), int(sys.argv[3])
MEMORY, SECONDS = 256 << 20, 10
# The program, its threads' stacks and what libraries hold, beside inputs and results.
BASE = 64 << 20
PICTURES = {"png", "jpg", "jpeg", "tif", "tiff", "webp", "bmp", "pnm", "pbm", "pgm", "ppm", "pam"}

files = sorted(os.path.join(at, name) for at, _, names in os.walk(folder) for name in names)
files = [f for f in files if os.path.isfile(f) and not f.endswith(".done")]
if not files:
    sys.exit(f"no files in {folder}: call with --fetch {folder}")

def commands(path):
    side = 0
    size = os.path.getsize(path)
    while (side + 1) ** 3 <= size and side < 200:
        side += 1
    extension = path.rsplit(".", 1)[-1].lower()
    form = [] if extension in PICTURES else ["--format", "text"]
    yield "blur", ["blur", path, "out.png", "--sigma", "2"], "out.png"
    yield "histogram", ["histogram", path, "-o", "out.csv"], "out.csv"
    yield "scan", ["scan", path, "out.npy", *form], "out.npy"
    # Any bytes are a volume, once a shape is told.
    shape = ["--dims", f"{side}x{side}x{side}", "--header-bytes", str(size - side ** 3)] if side else []
    yield "mesh", ["mesh", path, "out.ply", "--iso", "80", *shape], "out.ply"

def once(arguments, output):
    at = tempfile.mkdtemp(prefix="corpora-")
    with tempfile.TemporaryFile() as told:
        start = time.time()
        child = subprocess.Popen(
            [program, "--quiet", "--device", "cpu", "--threads", "2", "--max-memory", str(MEMORY), *arguments],
            cwd=at, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=told)
        hung = False
        while True:
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                break
            if time.time() - start > SECONDS:
                hung = True
                child.kill()
            time.sleep(0.002)
        child.returncode = status
        seconds = time.time() - start
        told.seek(0)
        text = told.read().decode(errors="replace")
    left = os.listdir(at)
    shutil.rmtree(at)
    return status, text, left, hung, seconds, usage.ru_maxrss * 1024

def check(path):
    results = []
    for name, arguments, output in commands(path):
        for _ in range(3):  # A machine under load gets a second chance, and a third.
            status, text, left, hung, seconds, memory = once(arguments, output)
            if not hung:
                break
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
        wrong = None
        if hung:
            wrong = f"takes more than {SECONDS} s"
        elif code < 0:
            wrong = f"dies of signal {-code}"
        elif code not in (0, 2, 4, 7):
            wrong = f"exits with {code}: {text}"
        elif "panicked" in text or "mistake in gpuproc" in text:
            wrong = f"panics: {text}"
        elif code == 0 and left != [output]:
            wrong = f"leaves {left} instead of {output}"
        elif code != 0 and left:
            wrong = f"leaves {left} after a failure"
        elif code in (4, 7) and (text.count("\n") != 1 or not text.startswith("error: ")):
            wrong = f"does not say one line: {text}"
        elif memory > MEMORY + BASE:
            wrong = f"takes {memory >> 20} MiB"
        results.append((name, code, seconds, memory, wrong, arguments, path))
    return results

with ThreadPoolExecutor(jobs) as pool:
    results = [r for some in pool.map(check, files) for r in some]

failed = [r for r in results if r[4]]
for name, code, seconds, memory, wrong, arguments, path in failed:
    print(f"FAILED: gpuproc {' '.join(arguments)}\n    {wrong.strip()}")
print(f"{len(files)} files of {len(os.listdir(folder))} entries, {MEMORY >> 20} MiB allowed")
print(f"{'command':<10} {'tried':>6} {'ok':>6} {'usage':>6} {'bad':>6} {'io':>6} {'failed':>6} {'most MiB':>9} {'longest s':>9}")
for name in ["blur", "histogram", "scan", "mesh"]:
    rows = [r for r in results if r[0] == name]
    by = [sum(r[1] == code for r in rows) for code in (0, 2, 4, 7)]
    print(f"{name:<10} {len(rows):>6} {by[0]:>6} {by[1]:>6} {by[2]:>6} {by[3]:>6} {sum(bool(r[4]) for r in rows):>6} "
          f"{max(r[3] for r in rows) >> 20:>9} {max(r[2] for r in rows):>9.2f}")
sys.exit(bool(failed))
PYTHON
