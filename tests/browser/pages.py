"""Opens each kind of page and uses it with pointer, touch and keyboard."""

import hashlib
import os
import struct
import subprocess
import sys
import tempfile
import zlib

from devtools import Browser

PROGRAM = sys.argv[1]
FIXTURES = os.path.join(os.getcwd(), "fixtures")
VOLUME = os.path.join(FIXTURES, "skull_64x64x64_uint8.raw")
PICTURE = os.path.join(FIXTURES, "skull.png")


def gpuproc(line):
    done = subprocess.run([PROGRAM, *line.split()], capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


def hash_of_ply(path):
    """SHA-256 of the positions of a binary PLY, followed by its vertex indices."""
    data = open(path, "rb").read()
    start = data.index(b"end_header\n") + 11
    head = data[:start].decode()
    vertices, faces = (int(head.split(f"element {name} ")[1].split()[0]) for name in ("vertex", "face"))
    numbers = data[start + 12 * vertices:]
    return hashlib.sha256(data[start:start + 12 * vertices]
                          + b"".join(numbers[13 * i + 1:13 * i + 13] for i in range(faces))).hexdigest()


def count_colours(png):
    """Approximate number of colours of a PNG: distinct groups of four bytes of its decompressed rows."""
    data, at = b"", 8
    while at < len(png):
        length, name = struct.unpack(">I4s", png[at:at + 8])
        data += png[at + 8:at + 8 + length] if name == b"IDAT" else b""
        at += length + 12
    rows = zlib.decompress(data)
    return len({rows[i:i + 4] for i in range(0, len(rows) - 4, 97)})


class Page:
    """Opens a page. On exit, checks that it is not blank, logged no error and requested nothing else."""

    def __init__(self, browser, path):
        self.browser, self.path = browser, path

    def __enter__(self):
        self.browser.open(self.path)
        return self.browser

    def __exit__(self, kind, *_):
        if kind is None:
            name = os.path.basename(self.path)
            folder = os.environ.get("GPUPROC_TEST_PICTURES") or os.path.dirname(self.path)
            picture = self.browser.screenshot(os.path.join(folder, name.replace(".html", ".png")))
            assert count_colours(picture) > 30, f"{name}: {count_colours(picture)} colours"
            assert not self.browser.errors, self.browser.errors
            others = [url for url in self.browser.requests if not url.startswith(("file:", "data:", "blob:"))]
            assert not others, others
            print(f"{name}: ok")


def assert_changes(browser, act, *names):
    """Checks that an action changes these entries of the page's state."""
    browser.settle(0.1)
    before = browser.state()
    act()
    browser.settle(0.1)
    browser.wait_for("true")
    after = browser.state()
    for name in names:
        assert before.get(name) != after.get(name), f"{name} is still {before.get(name)}"
    return after


def surfaces(browser, folder):
    page = os.path.join(folder, "surfaces.html")
    gpuproc(f"mesh {VOLUME} --iso 80,140 -o {page} --device cpu")
    with Page(browser, page) as b:
        state = b.state()
        assert state["triangles"] == "37508", state
        assert_changes(b, lambda: b.key("ArrowLeft"), "azimuth", "frames")
        assert_changes(b, lambda: b.key("ArrowUp"), "elevation")
        assert_changes(b, lambda: b.key("ArrowRight", shift=True), "target")
        assert_changes(b, lambda: b.key("+"), "zoom")
        assert_changes(b, lambda: b.key("Home"), "zoom", "azimuth")
        assert_changes(b, lambda: b.drag((400, 400), (500, 430)), "azimuth", "elevation")
        assert_changes(b, lambda: b.drag((400, 400), (450, 430), button="right"), "target")
        assert_changes(b, lambda: b.wheel(400, 400, 240), "zoom")
        assert_changes(b, lambda: b.key("z"), "clip")
        assert_changes(b, lambda: b.key("z"), "clip")
        assert_changes(b, lambda: b.key("t"), "theme")
        b.key("Home")
        b.key("m")
        # The centre of the area next to the panel, and a point near it.
        b.click(440, 380)
        b.click(490, 330)
        distance = float(b.wait_for("document.documentElement.dataset.distance"))
        assert 0 < distance < 64, distance
        b.key("m")
        b.key("s")
        assert int(b.wait_for("document.documentElement.dataset.picture")) > 1000
        b.evaluate("document.querySelector('.surface input[type=checkbox]').click()")
        assert "1,624" in b.wait_for("document.getElementById('facts-list').textContent")


def touch(browser, folder):
    browser.resize(390, 780, 2, mobile=True)
    with Page(browser, os.path.join(folder, "surfaces.html")) as b:
        assert_changes(b, lambda: b.touch(((150, 400), (230, 430))), "azimuth", "elevation")
        assert_changes(b, lambda: b.touch(((150, 400), (100, 400)), ((250, 400), (300, 420))), "zoom")
        assert_changes(b, lambda: b.touch(((150, 400), (190, 450)), ((250, 400), (290, 450))), "target")
        b.evaluate("document.getElementById('panelButton').click()")
        assert b.evaluate("getComputedStyle(document.getElementById('panel')).display") == "block"
        assert b.evaluate("document.documentElement.scrollWidth <= innerWidth")
    browser.resize(1200, 800)


def labels(browser, folder):
    """500 labels in cells of 6 samples per side: searches, hides, isolates and clips some of them."""
    page, volume = os.path.join(folder, "labels.html"), os.path.join(folder, "l_60x60x30_uint16.raw")
    cells = (1 + x // 6 + 10 * (y // 6) + 100 * (z // 6) for z in range(30) for y in range(60) for x in range(60))
    with open(volume, "wb") as file:
        file.write(b"".join(struct.pack("<H", cell) for cell in cells))
    gpuproc(f"mesh {volume} --labels -o {page} --device cpu")
    with Page(browser, page) as b:
        assert b.evaluate("document.getElementById('surfacesTitle').textContent") == "Labels: 500 of 500 shown"

        def find(text):
            b.evaluate(f"document.getElementById('search').value = '{text}'")
            b.evaluate("document.getElementById('search').dispatchEvent(new Event('input'))")
            return int(b.state()["listed"])

        assert [find(text) for text in ["", "7", "3, 10..20", "label 50", "none"]] == [500, 11, 12, 2, 0]
        find("101..500")
        assert_changes(b, lambda: b.evaluate("document.getElementById('listedHide').click()"), "shown", "frames")
        assert b.state()["shown"] == "100"
        find("5, 55")
        assert_changes(b, lambda: b.evaluate("document.querySelector('.rows button.label').click()"), "shown")
        assert b.state()["shown"] == "1"
        assert "216" in b.evaluate("document.getElementById('facts-list').textContent")
        b.evaluate("document.querySelector('.rows button.label').click()")
        assert b.state()["shown"] == "500"
        b.evaluate("document.querySelector('.rows input[type=checkbox]').click()")
        assert b.state()["shown"] == "499"
        assert_changes(b, lambda: b.key("x"), "clip", "frames")


def live(browser, folder):
    page, mesh = os.path.join(folder, "live.html"), os.path.join(folder, "live.ply")
    for options in ["", "--close --spacing 0.7,0.7,1.25 --origin=-9,3,0.1"]:
        output = gpuproc(f"mesh {VOLUME} --iso 80 -o {page} --live --device cpu {options}")
        gpuproc(f"mesh {VOLUME} --iso 80 -o {mesh} --device cpu {options}")
        expected = hash_of_ply(mesh)
        assert expected in output, output
        with Page(browser, page) as b:
            b.wait_for("document.documentElement.dataset.hash", 60)
            state = b.state()
            assert state["live"] == "on" and state["hash"] == expected and state["same"] == "true", state
            for iso in ["120", "100.5"]:
                number = "document.getElementById('isoNumber')"
                b.evaluate(f"{number}.value = {iso}; {number}.dispatchEvent(new Event('change'))")
                b.wait_for(f"document.documentElement.dataset.iso === '{iso}' && document.documentElement.dataset.hash", 60)
                gpuproc(f"mesh {VOLUME} --iso {iso} -o {mesh} --device cpu {options}")
                assert b.state()["hash"] == hash_of_ply(mesh), (iso, options)


def types(browser, folder):
    """Other sample types, and a NaN."""
    page, mesh = os.path.join(folder, "types.html"), os.path.join(folder, "types.ply")
    samples = open(VOLUME, "rb").read()
    for name, code, scale in [("int16", "<h", -150), ("uint16", "<H", 130), ("float32", "<f", 0.37), ("int8", "<b", 0.4)]:
        values = [scale * (value - (100 if name == "int8" else 0)) for value in samples]
        if name != "float32":
            values = [int(value) for value in values]
        elif values:
            values[64 * 64 * 32 + 64 * 32 + 20] = float("nan")
        volume = os.path.join(folder, f"v_64x64x64_{name}.raw")
        with open(volume, "wb") as file:
            file.write(b"".join(struct.pack(code, value) for value in values))
        iso = {"int16": "-12000.5", "uint16": "10400", "float32": "29.61", "int8": "-8"}[name]
        gpuproc(f"mesh {volume} --iso={iso} -o {page} --live --device cpu")
        gpuproc(f"mesh {volume} --iso={iso} -o {mesh} --device cpu")
        with Page(browser, page) as b:
            b.wait_for("document.documentElement.dataset.hash", 60)
            assert b.state()["hash"] == hash_of_ply(mesh) and b.state()["same"] == "true", (name, b.state())


def without_webgpu(folder):
    with Browser(flags=["--disable-features=WebGPU,WebGPUService", "--disable-blink-features=WebGPU"]) as browser:
        with Page(browser, os.path.join(folder, "live.html")) as b:
            b.evaluate("delete Navigator.prototype.gpu")
            b.wait_for("document.documentElement.dataset.live", 60)
            state = b.state()
            if state["live"] == "off":
                assert b.evaluate("document.getElementById('isoSlider').disabled")
                assert "WebGPU" in b.evaluate("document.getElementById('liveNote').textContent")
            assert int(state["triangles"]) > 1000


def histogram(browser, folder):
    page = os.path.join(folder, "histogram.html")
    gpuproc(f"histogram {PICTURE} -o {page} --stats --device cpu")
    with Page(browser, page) as b:
        assert_changes(b, lambda: b.call("Input.dispatchMouseEvent", type="mouseMoved", x=500, y=300), "bin")
        assert "%" in b.evaluate("document.getElementById('tip').textContent")
        b.evaluate("document.getElementById('plot').focus()")
        bin_before = int(b.state()["bin"])
        assert_changes(b, lambda: b.key("ArrowRight"), "bin")
        assert int(b.state()["bin"]) == bin_before + 1, b.state()
        assert b.state()["axis"] == "samples per bin", b.state()
        assert_changes(b, lambda: b.key("l"), "log")
        assert_changes(b, lambda: b.key("c"), "cumulative")
        assert b.state()["axis"] == "samples up to the bin (logarithmic)", b.state()
        assert_changes(b, lambda: b.key("c"), "cumulative")
        assert_changes(b, lambda: b.key("l"), "log")
        # The background dominates the histogram: its bar is clipped and labelled, unless all bars are shown in full.
        assert max(map(float, b.state()["cut"].split(","))) > 10000, b.state()
        assert_changes(b, lambda: b.key("f"), "full")
        assert b.state()["cut"] == "", b.state()
        assert_changes(b, lambda: b.key("f"), "full")
        assert_changes(b, lambda: b.key("+"), "first")
        assert_changes(b, lambda: b.key("Home"), "first")


def compare(browser, folder):
    page = os.path.join(folder, "compare.html")
    gpuproc(f"blur {PICTURE} -o {page} --compare --sigma 6 --device cpu")
    with Page(browser, page) as b:
        assert_changes(b, lambda: b.key("ArrowRight"), "divider")
        assert_changes(b, lambda: b.drag((600, 400), (700, 400)), "divider")
        assert_changes(b, lambda: b.key("+"), "zoom")
        assert_changes(b, lambda: b.key(" "), "flipped")
        assert_changes(b, lambda: b.key(" "), "flipped")
        assert_changes(b, lambda: b.wheel(300, 300, -200), "zoom")
        b.key("Home")
    browser.resize(390, 780, 2, mobile=True)
    with Page(browser, page) as b:
        assert_changes(b, lambda: b.touch(((150, 400), (250, 430))), "divider")
        assert_changes(b, lambda: b.touch(((150, 400), (100, 400)), ((250, 400), (300, 420))), "zoom")


def main():
    with tempfile.TemporaryDirectory() as folder:
        with Browser() as browser:
            for test in [surfaces, touch, labels, live, types, histogram, compare]:
                test(browser, folder)
        without_webgpu(folder)
    print("all pages work")


main()
