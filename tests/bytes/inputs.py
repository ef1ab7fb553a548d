"""Writes the inputs of run.py: small files of every format that gpuproc reads. Their bytes are always the same.

The writers need only the standard library. Files in complicated formats (JPEG, WebP, EXR, GIF) come from the folder
`fixtures` of the repository, and from gpuproc itself (lines that begin with `make` in cases.txt).
"""

import array
import gzip
import hashlib
import json
import math
import pathlib
import shutil
import struct
import zipfile
import zlib

CODES = {"u8": "B", "i8": "b", "u16": "H", "i16": "h", "u32": "I", "i32": "i", "u64": "Q", "i64": "q", "f32": "f", "f64": "d"}
BYTES = {name: array.array(code).itemsize for name, code in CODES.items()}


def pack(kind, values, big=False):
    """Encodes numbers of a type such as u16."""
    numbers = array.array(CODES[kind], values)
    if big:
        numbers.byteswap()
    return numbers.tobytes()


def noise(count, seed):
    """Pseudo-random bytes that depend only on the seed."""
    return hashlib.shake_128(str(seed).encode()).digest(count)


def picture(width, height, channels, top=255, alpha=False):
    """Samples of an image with gradients, a disc and noise. With `alpha`, the last channel has transparent areas."""
    grain = noise(width * height * channels, (width, height, channels))
    samples = []
    for y in range(height):
        for x in range(width):
            disc = 0.4 * ((x - width / 2) ** 2 + (y - height / 3) ** 2 < (height / 4) ** 2)
            for c in range(channels):
                if alpha and c == channels - 1:
                    share = min(1.0, max(0.0, (x + y) / (width + height) * 1.6 - 0.3))
                else:
                    share = 0.3 * x / width + 0.2 * ((y + 7 * c) % height) / height + disc + 0.1 * grain[len(samples)] / 255
                samples.append(int(share * top))
    return samples


# Images.


def png_chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_rows(samples, width, height, depth, channels):
    """Compresses rows, the first half with the filter "none" and the second half with the filter "up"."""
    rows = []
    for y in range(height):
        row = samples[y * width * channels : (y + 1) * width * channels]
        bits = "".join(f"{value:0{depth}b}" for value in row)
        bits += "0" * (-len(bits) % 8)
        rows.append(int(bits, 2).to_bytes(len(bits) // 8, "big"))
    data = b""
    for y, row in enumerate(rows):
        if y > height // 2:
            data += b"\2" + bytes((a - b) % 256 for a, b in zip(row, rows[y - 1]))
        else:
            data += b"\0" + row
    return zlib.compress(data, 6)


def png(path, width, height, depth, colour, samples, chunks=(), frames=()):
    """Writes a PNG file of colour type 0, 2, 3, 4 or 6. With `frames`, it is an animation whose first frame is `samples`."""
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    data = b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))
    for kind, content in chunks:
        data += png_chunk(kind, content)
    if frames:
        data += png_chunk(b"acTL", struct.pack(">II", 1 + len(frames), 3))
    number = 0
    for index, frame in enumerate([samples, *frames]):
        packed = png_rows(frame, width, height, depth, channels)
        if frames:
            data += png_chunk(b"fcTL", struct.pack(">IIIIIHHBB", number, width, height, 0, 0, 2 + index, 25, 0, 0))
            number += 1
        if index:
            data += png_chunk(b"fdAT", struct.pack(">I", number) + packed)
            number += 1
        else:
            data += png_chunk(b"IDAT", packed)
    path.write_bytes(data + png_chunk(b"IEND", b""))


def packbits(data):
    """Encodes PackBits with literal runs only."""
    return b"".join(bytes([len(data[i : i + 128]) - 1]) + data[i : i + 128] for i in range(0, len(data), 128))


def tiff(path, pages, width, height, channels, kind, big=False, big_tiff=False, tile=0, rows=0, compression=1, predictor=1,
         planar=False, more=()):
    """Writes a TIFF file of several pages, with strips of `rows` rows or square tiles. Compression is none (1), deflate (8) or
    PackBits (32773), and the predictor 1 or 2."""
    order, size = "><"[not big], BYTES[kind]
    entry, offset_type, offset_format = ("HHQ", 16, "Q") if big_tiff else ("HHI", 4, "I")
    data = bytearray(b"MM" if big else b"II")
    data += struct.pack(order + ("HHHQ" if big_tiff else "HI"), *([43, 8, 0, 16] if big_tiff else [42, 8]))
    link = len(data) - struct.calcsize(offset_format)

    def block(samples, x, y, w, h, planes):
        """Encodes a strip or a tile. Samples outside of the image are 0."""
        out = b""
        for row in range(y, y + h):
            line = []
            for column in range(x, x + w):
                for c in planes:
                    inside = row < height and column < width
                    line.append(samples[(row * width + column) * channels + c] if inside else 0)
            if predictor == 2:
                step = len(planes)
                line = [v if i < step else (v - line[i - step]) % 256**size for i, v in enumerate(line)]
            out += pack(kind, line, big)
        return {1: bytes, 8: zlib.compress, 32773: packbits}[compression](out)

    for samples in pages:
        offsets, counts = [], []
        for planes in [[c] for c in range(channels)] if planar else [range(channels)]:
            for y in range(0, height, tile or rows or height):
                for x in range(0, width, tile or width):
                    h = tile or min(rows or height, height - y)
                    packed = block(samples, x, y, tile or width, h, planes)
                    offsets.append(len(data))
                    counts.append(len(packed))
                    data += packed + bytes(len(packed) % 2)
        sample_format = {"u": 1, "i": 2, "f": 3}[kind[0]]
        tags = [(256, 4, [width]), (257, 4, [height]), (258, 3, [8 * size] * channels), (259, 3, [compression]),
                (262, 3, [2 if channels > 2 else 1]), (277, 3, [channels]), (284, 3, [2 if planar else 1]),
                (317, 3, [predictor]), (339, 3, [sample_format] * channels), *more]
        if channels in (2, 4):
            tags.append((338, 3, [2]))
        if tile:
            tags += [(322, 3, [tile]), (323, 3, [tile]), (324, offset_type, offsets), (325, offset_type, counts)]
        else:
            tags += [(273, offset_type, offsets), (278, 4, [rows or height]), (279, offset_type, counts)]
        entries = b""
        for tag, field, values in sorted(tags):
            if isinstance(values, bytes):
                content, count = values, len(values)
            else:
                letter = {3: "H", 4: "I", 5: "I", 16: "Q"}[field]
                content, count = struct.pack(f"{order}{len(values)}{letter}", *values), len(values) // (2 if field == 5 else 1)
            room = struct.calcsize(offset_format)
            if len(content) > room:
                at = len(data)
                data += content + bytes(len(content) % 2)
                content = struct.pack(order + offset_format, at)
            entries += struct.pack(order + entry, tag, field, count) + content.ljust(room, b"\0")
        data += bytes(-len(data) % 8)
        data[link : link + struct.calcsize(offset_format)] = struct.pack(order + offset_format, len(data))
        data += struct.pack(order + ("Q" if big_tiff else "H"), len(tags)) + entries
        link = len(data)
        data += bytes(struct.calcsize(offset_format))
    path.write_bytes(data)


def bmp(path, width, height, bits, samples, palette=b""):
    """Writes a BMP file with the bottom row first, of 8 bits with a palette, 24 or 32 bits."""
    channels = bits // 8
    rows = b""
    for y in reversed(range(height)):
        row = bytes(samples[y * width * channels : (y + 1) * width * channels])
        rows += row + bytes(-len(row) % 4)
    start = 54 + len(palette)
    header = struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, 0, len(rows), 2835, 2835, len(palette) // 4, 0)
    path.write_bytes(b"BM" + struct.pack("<IHHI", start + len(rows), 0, 0, start) + header + palette + rows)


def write_images(folder):
    w, h = 61, 47
    orientation = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0"
    palette = bytes(v for i in range(256) for v in (i, 255 - i, i * 7 % 256))
    texts = [(b"pHYs", struct.pack(">IIB", 3937, 3937, 1)), (b"tEXt", b"Title\0A disc"), (b"tEXt", b"Author\0Nobody"),
             (b"gAMA", struct.pack(">I", 45455)), (b"eXIf", orientation)]
    names = {0: "grey", 2: "rgb", 4: "greya", 6: "rgba"}
    for colour, channels in [(0, 1), (2, 3), (4, 2), (6, 4)]:
        for depth, top in [(8, 255), (16, 65535)]:
            samples = picture(w, h, channels, top, colour in (4, 6))
            png(folder / f"{names[colour]}{depth}.png", w, h, depth, colour, samples)
    rgb, grey = picture(w, h, 3), picture(w, h, 1)
    png(folder / "texts.png", w, h, 8, 2, rgb, texts)
    png(folder / "palette.png", w, h, 8, 3, grey, [(b"PLTE", palette), (b"tRNS", bytes(range(0, 256, 2)))])
    for depth in (1, 2, 4):
        png(folder / f"grey{depth}.png", w, h, depth, 0, picture(w, h, 1, 2**depth - 1))
    frames = [[(v * (n + 2)) % 256 for v in rgb] for n in range(3)]
    png(folder / "animation.png", w, h, 8, 2, rgb, frames=frames)
    mask = [255 * ((x - 30) ** 2 + (y - 20) ** 2 < 300) for y in range(h) for x in range(w)]
    png(folder / "mask.png", w, h, 8, 0, mask)
    # An image that is large enough to be processed in bands. Its rows are shifted pieces of one line of noise.
    wide, tall = 1200, 900
    line = noise(3 * (wide + tall), "line")
    large = b"".join(line[3 * y : 3 * y + 3 * wide] for y in range(tall))
    rows = b"".join(b"\0" + large[3 * wide * y : 3 * wide * (y + 1)] for y in range(tall))
    header = struct.pack(">IIBBBBB", wide, tall, 8, 2, 0, 0, 0)
    (folder / "large.png").write_bytes(b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header)
                                       + png_chunk(b"IDAT", zlib.compress(rows, 1)) + png_chunk(b"IEND", b""))
    (folder / "large.ppm").write_bytes(b"P6 1200 900 255\n" + large)
    (folder / "p1.pbm").write_text("P1\n# a comment\n5 4\n" + "1 0 1 1 0\n" * 4)
    (folder / "p4.pbm").write_bytes(b"P4 16 4\n" + noise(8, "p4"))
    (folder / "p2.pgm").write_text(f"P2 {w} {h} 1000\n" + " ".join(str(v * 3) for v in grey))
    (folder / "p5.pgm").write_bytes(f"P5 {w} {h} 65535\n".encode() + pack("u16", picture(w, h, 1, 65535), big=True))
    (folder / "p3.ppm").write_text(f"P3 {w} {h} 255\n" + " ".join(map(str, rgb)))
    (folder / "p7.pam").write_bytes(f"P7\nWIDTH {w}\nHEIGHT {h}\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n".encode()
                                    + bytes(picture(w, h, 4, 255, True)))
    (folder / "grey.pfm").write_bytes(f"Pf\n{w} {h}\n-1.0\n".encode() + pack("f32", [v / 255 for v in grey]))
    (folder / "rgb.pfm").write_bytes(f"PF\n{w} {h}\n1.0\n".encode() + pack("f32", [v / 200 - 0.1 for v in rgb], big=True))
    bmp(folder / "rgb.bmp", w, h, 24, rgb)
    bmp(folder / "palette.bmp", w, h, 8, grey, bytes(v for i in range(256) for v in (i, i, 255 - i, 0)))
    for name, text in {"text.jpg": "no picture", "empty.png": "", "fake.tif": "II*\0" + "\0" * 4}.items():
        (folder / name).write_text(text)


def write_tiffs(folder):
    w, h = 37, 29
    signed = lambda values, scale=1: [(v - 100) * scale for v in values]
    rgb, grey = picture(w, h, 3), picture(w, h, 1)
    rgb16 = picture(w, h, 3, 65535)
    for kind, values in {"i8": signed([v // 2 for v in grey]), "u16": [v * 257 for v in grey], "i16": signed(grey, 100),
                         "u32": [v * 10**7 for v in grey], "i32": signed(grey, 10**6), "f32": [v / 255 for v in grey],
                         "f64": [v / 7 - 5 for v in grey]}.items():
        tiff(folder / f"{kind}.tif", [values], w, h, 1, kind, rows=5)
    tiff(folder / "rgb.tif", [rgb], w, h, 3, "u8", rows=8, compression=8, predictor=2,
         more=[(270, 2, b"A description\0"), (282, 5, [300, 1]), (283, 5, [300, 1]), (296, 3, [2])])
    tiff(folder / "packbits.tif", [rgb], w, h, 3, "u8", rows=4, compression=32773)
    tiff(folder / "big_endian.tif", [rgb16], w, h, 3, "u16", big=True, rows=7, predictor=2, compression=8)
    tiff(folder / "big_tiff.tif", [rgb16], w, h, 3, "u16", big_tiff=True)
    tiff(folder / "tiles.tif", [rgb], w, h, 3, "u8", tile=16, compression=8, predictor=2)
    tiff(folder / "tiles_planar.tif", [rgb16], w, h, 3, "u16", tile=16, planar=True)
    tiff(folder / "planar.tif", [rgb], w, h, 3, "u8", rows=9, planar=True, compression=8)
    tiff(folder / "alpha.tif", [picture(w, h, 4, 65535, True)], w, h, 4, "u16", rows=6)
    pages = [[(v + 40 * n) % 256 for v in rgb] for n in range(4)]
    tiff(folder / "pages.tif", pages, w, h, 3, "u8", rows=8, compression=8)
    stack = [[v + 5 * n * n for v in grey] for n in range(12)]
    description = b"ImageJ=1.53\nimages=12\nslices=12\nunit=mm\nspacing=2.5\0"
    tiff(folder / "stack.tif", stack, w, h, 1, "u16", more=[(270, 2, description)])


# Volumes.

SIZE = (20, 18, 16)


def field(scale=1.0, shift=0.0, kind="u8"):
    """Samples of a hollow ellipsoid with noise, x fastest, from 0 to about 200 times `scale`."""
    grain = noise(math.prod(SIZE), "field")
    values = []
    for z in range(SIZE[2]):
        for y in range(SIZE[1]):
            for x in range(SIZE[0]):
                r = math.hypot(x - 9.3, (y - 8.6) * 1.1, (z - 7.4) * 1.2)
                value = 190 * math.exp(-(((r - 5) / 2.2) ** 2)) + grain[len(values)] / 25
                values.append(value * scale + shift)
    return values if kind[0] == "f" else [int(v) for v in values]


def labels():
    """Samples of a label volume: a ball that is cut into eight labels. 0 is the background."""
    values = []
    for z in range(SIZE[2]):
        for y in range(SIZE[1]):
            for x in range(SIZE[0]):
                inside = math.hypot(x - 9, y - 9, z - 7.5) < 7
                values.append((1 + (x > 9) + 2 * (y > 8) + 4 * (z > 11)) * inside)
    return values


def nifti(path, kind, values, big=False, version=1, slope=1.0, intercept=0.0, size=SIZE, times=1, pair=False):
    """Writes a NIfTI-1 or -2 file with an oblique sform, in millimetres. With `pair`, the samples are in an .img file."""
    order = "><"[not big]
    code = {"u8": 2, "i16": 4, "i32": 8, "f32": 16, "f64": 64, "i8": 256, "u16": 512, "u32": 768, "i64": 1024, "u64": 1280}[kind]
    dims = [3 + (times > 1), *size, times, 1, 1, 1]
    steps = [1, 0.8, 1.25, 2, 1, 1, 1, 1]
    rows = [-0.8, 0.1, 0, 12.5, 0.05, 1.2, -0.3, -30.25, 0, 0.4, 1.9, 7]
    start = (0 if pair else 544) if version == 2 else (0 if pair else 352)
    if version == 1:
        head = bytearray(348)
        struct.pack_into(order + "i", head, 0, 348)
        struct.pack_into(order + "8h", head, 40, *dims)
        struct.pack_into(order + "hh", head, 70, code, 8 * BYTES[kind])
        struct.pack_into(order + "8f", head, 76, *steps)
        struct.pack_into(order + "fff", head, 108, start, slope, intercept)
        head[123] = 2
        struct.pack_into(order + "hh", head, 252, 0, 1)
        struct.pack_into(order + "12f", head, 280, *rows)
        head[344:348] = b"ni1\0" if pair else b"n+1\0"
        head += bytes(4 * (not pair))
    else:
        head = bytearray(540)
        struct.pack_into(order + "i8s", head, 0, 540, b"n+2\0\r\n\x1a\n")
        struct.pack_into(order + "hh8q", head, 12, code, 8 * BYTES[kind], *dims)
        struct.pack_into(order + "8d", head, 104, *steps)
        struct.pack_into(order + "qdd", head, 168, start, slope, intercept)
        struct.pack_into(order + "ii", head, 344, 0, 1)
        struct.pack_into(order + "12d", head, 400, *rows)
        struct.pack_into(order + "i", head, 500, 2)
        head += bytes(4)
    data = pack(kind, values, big)
    if pair:
        path.with_suffix(".img").write_bytes(data)
        data = b""
    data = bytes(head) + data
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def nrrd(path, kind, data, encoding="raw", endian="little", more=""):
    name = {"u8": "uint8", "i16": "int16", "u16": "uint16", "f32": "float", "f64": "double", "i32": "int32"}[kind]
    text = f"NRRD0004\n# a comment\ntype: {name}\ndimension: 3\nsizes: {SIZE[0]} {SIZE[1]} {SIZE[2]}\n" \
           f"encoding: {encoding}\nendian: {endian}\n{more}"
    path.write_bytes(text.encode() + (b"" if "data file" in more else b"\n" + data))


def npy(path, kind, shape, values, big=False, fortran=False):
    descr = "|b1" if kind == "bool" else "<>"[big] + kind[0] + str(BYTES[kind])
    text = repr({"descr": descr, "fortran_order": fortran, "shape": tuple(shape)})
    text += " " * (-(len(text) + 11) % 64) + "\n"
    data = bytes(values) if kind == "bool" else pack(kind, values, big)
    path.write_bytes(b"\x93NUMPY\x01\0" + struct.pack("<H", len(text)) + text.encode() + data)


def dicom_element(group, element, kind, value):
    if isinstance(value, str):
        value = value.encode()
    value += (b"\0" if kind in ("UI", "OW") else b" ") * (len(value) % 2)
    length = struct.pack("<HI", 0, len(value)) if kind == "OW" else struct.pack("<H", len(value))
    return struct.pack("<HH", group, element) + kind.encode() + length + value


def dicom(path, series, number, z, width, height, values):
    """Writes a CT slice with explicit VR, little-endian."""
    short = lambda v: struct.pack("<H", v)
    elements = [
        (0x0008, 0x0016, "UI", "1.2.840.10008.5.1.4.1.1.2"), (0x0008, 0x0018, "UI", f"1.2.3.{series}.{number}"),
        (0x0008, 0x0060, "CS", "CT"), (0x0010, 0x0010, "PN", "Nobody"), (0x0018, 0x0050, "DS", "2"),
        (0x0020, 0x000D, "UI", "1.2.3"), (0x0020, 0x000E, "UI", f"1.2.3.{series}"), (0x0020, 0x0011, "IS", str(series)),
        (0x0020, 0x0013, "IS", str(number)), (0x0020, 0x0032, "DS", f"-10\\5.5\\{z}"), (0x0020, 0x0037, "DS", "1\\0\\0\\0\\1\\0"),
        (0x0020, 0x0052, "UI", "1.2.3.99"), (0x0028, 0x0002, "US", short(1)), (0x0028, 0x0004, "CS", "MONOCHROME2"),
        (0x0028, 0x0010, "US", short(height)), (0x0028, 0x0011, "US", short(width)), (0x0028, 0x0030, "DS", "1.25\\0.8"),
        (0x0028, 0x0100, "US", short(16)), (0x0028, 0x0101, "US", short(16)), (0x0028, 0x0102, "US", short(15)),
        (0x0028, 0x0103, "US", short(1)), (0x0028, 0x1052, "DS", "-1024"), (0x0028, 0x1053, "DS", "1"),
        (0x7FE0, 0x0010, "OW", pack("i16", values)),
    ]
    meta = dicom_element(2, 0x0010, "UI", "1.2.840.10008.1.2.1")
    meta = dicom_element(2, 0x0000, "UL", struct.pack("<I", len(meta))) + meta
    path.write_bytes(bytes(128) + b"DICM" + meta + b"".join(dicom_element(*e) for e in elements))


def zarr2(folder, channels=2, times=2):
    """Writes an OME-Zarr 0.4 store of u16 with axes t, c, z, y, x and two levels. Chunks have one channel and are compressed
    with zlib."""
    folder.mkdir()
    base = [int(v) for v in field(100)]
    axes = [{"name": "t", "type": "time"}, {"name": "c", "type": "channel"}]
    axes += [{"name": name, "type": "space", "unit": "micrometer"} for name in "zyx"]
    levels = []
    for level in (0, 1):
        step = 2**level
        w, h, d = (s // step for s in SIZE)
        samples = [base[((z * SIZE[1] + y) * SIZE[0] + x) * step] for z in range(d) for y in range(h) for x in range(w)]
        (folder / f"{level}").mkdir()
        head = {"zarr_format": 2, "shape": [times, channels, d, h, w], "chunks": [1, 1, d, h, w], "dtype": "<u2", "fill_value": 0,
                "order": "C", "filters": None, "compressor": {"id": "zlib", "level": 1}, "dimension_separator": "."}
        (folder / f"{level}/.zarray").write_text(json.dumps(head))
        for t in range(times):
            for c in range(channels):
                data = pack("u16", [(v * (1 + c) + 50 * t) % 65536 for v in samples])
                (folder / f"{level}/{t}.{c}.0.0.0").write_bytes(zlib.compress(data, 1))
        scale = {"type": "scale", "scale": [1, 1, 2 * step, step, step]}
        levels.append({"path": f"{level}", "coordinateTransformations": [scale]})
    (folder / ".zgroup").write_text('{"zarr_format": 2}')
    scales = [{"version": "0.4", "name": "cells", "axes": axes, "datasets": levels}]
    channel_list = [{"label": f"channel {c}", "color": "00FF00", "window": {"start": 0, "end": 20000}} for c in range(channels)]
    (folder / ".zattrs").write_text(json.dumps({"multiscales": scales, "omero": {"channels": channel_list}}))


def write_volumes(folder):
    u8, i16, f32 = field(), field(12, -900, "i16"), field(0.01, -0.5, "f32")
    nifti(folder / "u8.nii", "u8", u8)
    nifti(folder / "i16.nii.gz", "i16", i16)
    nifti(folder / "f32_big.nii", "f32", f32, big=True)
    nifti(folder / "u16_v2.nii", "u16", field(300), version=2)
    nifti(folder / "scaled.nii", "i16", i16, slope=0.5, intercept=-7.25)
    nifti(folder / "f64.nii", "f64", field(1, 0, "f64"))
    nifti(folder / "i32.nii", "i32", field(10**6, -3 * 10**7))
    nifti(folder / "times.nii", "u8", u8 + [v // 2 for v in u8], times=2)
    nifti(folder / "pair.hdr", "i16", i16, pair=True)
    nifti(folder / "labels.nii", "u8", labels())
    nifti(folder / "labels16.nii.gz", "u16", [v * 700 for v in labels()])
    nifti(folder / "labels64.nii", "i64", [v * 10**12 for v in labels()])
    nifti(folder / "mask.nii", "u8", [int(v > 0) for v in labels()])
    nifti(folder / "nan.nii", "f32", [math.nan if i % 97 == 0 else v for i, v in enumerate(field(1, 0, "f32"))])
    space = "space: left-posterior-superior\nspace directions: (0.8,0,0) (0,1.25,0.2) (0,0,2)\nspace origin: (-5,10,3.5)\n"
    nrrd(folder / "raw.nrrd", "i16", pack("i16", i16, True), endian="big", more=space)
    nrrd(folder / "gzip.nrrd", "u8", gzip.compress(bytes(u8), mtime=0), "gzip", more="spacings: 1 1.5 2\nmodality:=MR\n")
    nrrd(folder / "ascii.nrrd", "u8", " ".join(map(str, u8)).encode(), "ascii")
    nrrd(folder / "detached.nhdr", "f32", b"", more="data file: detached.bin\n")
    (folder / "detached.bin").write_bytes(pack("f32", f32))
    meta = f"ObjectType = Image\nNDims = 3\nDimSize = {SIZE[0]} {SIZE[1]} {SIZE[2]}\nElementSpacing = 0.8 1.25 2\n" \
           "Offset = -5 10 3.5\nTransformMatrix = 0 1 0 1 0 0 0 0 1\n"
    raw = pack("i16", i16)
    (folder / "raw.mha").write_bytes(f"{meta}ElementType = MET_SHORT\nElementDataFile = LOCAL\n".encode() + raw)
    (folder / "zlib.mha").write_bytes(f"{meta}CompressedData = True\nElementType = MET_SHORT\nElementDataFile = LOCAL\n".encode()
                                      + zlib.compress(raw))
    (folder / "apart.mhd").write_text(f"{meta}ElementType = MET_FLOAT\nElementDataFile = detached.bin\n")
    header = bytearray(1024)
    struct.pack_into("<4i", header, 0, *SIZE, 1)
    struct.pack_into("<3i", header, 28, *SIZE)
    struct.pack_into("<6f", header, 40, *(s * 1.5 for s in SIZE), 90, 90, 90)
    struct.pack_into("<3i", header, 64, 1, 2, 3)
    struct.pack_into("<3f", header, 196, 4, 5, 6)
    header[208:216] = b"MAP \x44\x44\0\0"
    struct.pack_into("<i", header, 108, 20140)
    (folder / "map.mrc").write_bytes(bytes(header) + raw)
    shape = SIZE[::-1]
    npy(folder / "volume.npy", "f32", shape, f32)
    npy(folder / "fortran.npy", "u16", shape, field(100), fortran=True)
    x, y, z = SIZE
    (folder / f"shell_{x}x{y}x{z}_uint8.raw").write_bytes(bytes(u8))
    (folder / f"shell_{x}x{y}x{z}_int16.raw.gz").write_bytes(gzip.compress(raw, mtime=0))
    for kind in CODES:
        values = field(0.5, 0 if kind[0] == "u" else -20, kind)
        (folder / f"plain_{kind}.raw").write_bytes(b"header" + pack(kind, values, big=True))
    (folder / "dicom").mkdir()
    width, height, depth = 14, 11, 7
    for series, count in [(1, depth), (2, 3)]:
        for n in range(count):
            values = [(x * x + y * n * 5 + n * 40) % 900 for y in range(height) for x in range(width)]
            dicom(folder / f"dicom/{series}-{n:02}.dcm", series, n + 1, 2.5 * n - 4, width, height, values)
    (folder / "slices").mkdir()
    plane = SIZE[0] * SIZE[1]
    for n in range(SIZE[2]):
        png(folder / f"slices/s{n}.png", SIZE[0], SIZE[1], 8, 0, u8[n * plane : (n + 1) * plane])
    zarr2(folder / "cells.zarr")
    with zipfile.ZipFile(folder / "cells.zip", "w") as pack_file:
        for file in sorted((folder / "cells.zarr").rglob("*")):
            if file.is_file():
                name = zipfile.ZipInfo(str(file.relative_to(folder / "cells.zarr")), (2020, 1, 1, 0, 0, 0))
                pack_file.writestr(name, file.read_bytes())


# Numbers.


def write_numbers(folder):
    rng = noise(40000, "numbers")
    whole = [int.from_bytes(rng[i : i + 4], "little") for i in range(0, 20000, 4)]
    for kind in CODES:
        size = 8 * BYTES[kind]
        if kind[0] == "f":
            values = [(v - 2**31) / 1000 for v in whole]
        else:
            values = [v % 2**size - (2 ** (size - 1) if kind[0] == "i" else 0) for v in whole]
        npy(folder / f"{kind}.npy", kind, [len(values)], values)
        (folder / f"{kind}.bin").write_bytes(pack(kind, values))
    npy(folder / "bool.npy", "bool", [100], [v % 2 for v in rng[:100]])
    npy(folder / "big.npy", "i32", [500], [v - 2**31 for v in whole[:500]], big=True)
    npy(folder / "table.npy", "u32", [50, 40], [v % 1000 for v in whole[:2000]])
    npy(folder / "table_fortran.npy", "f32", [50, 40], [v / 2**31 for v in whole[:2000]], fortran=True)
    npy(folder / "cube.npy", "i64", [20, 30, 3], [v % 2000 - 1000 for v in whole[:1800]])
    npy(folder / "payload.npy", "f64", [5000], [v / 8 for v in whole])
    npy(folder / "long.npy", "u32", [300000], array.array("I", noise(1200000, "long")).tolist())
    (folder / "u32.txt").write_text("\n".join(" ".join(str(v % 1000) for v in whole[i : i + 7]) for i in range(0, 700, 7)) + "\n")
    (folder / "floats.csv").write_text("1.5,-0,nan\n0,inf,-2e3\n-inf,1e-300,7\n")
    (folder / "keys.txt").write_text(" ".join("1" if v % 3 == 0 else "2" for v in whole[:700]))
    (folder / "keys.bin").write_bytes(b"".join(b"key of %4d " % (i // 9) for i in range(5000)))
    (folder / "bad.txt").write_text("1 2 three 4\n")
    (folder / "empty.txt").write_text("")


def damage(folder):
    """Writes damaged copies of files to the folder `damaged`: truncated to 60 %, and with a changed byte in the middle or in
    the header."""
    target = folder / "damaged"
    target.mkdir()
    names = ["grey8.png", "rgb16.png", "palette.png", "animation.png", "p5.pgm", "p3.ppm", "rgb.pfm", "rgb.bmp", "tiff/rgb.tif",
             "tiff/tiles.tif", "tiff/pages.tif", "tiff/big_tiff.tif", "tiff/packbits.tif", "volumes/u8.nii", "volumes/i16.nii.gz",
             "volumes/gzip.nrrd", "volumes/raw.nrrd", "volumes/zlib.mha", "volumes/map.mrc", "volumes/volume.npy",
             "volumes/dicom/1-00.dcm", "volumes/cells.zip",
             "fixtures/jpeg/progressive_420.jpg", "fixtures/jpeg/sequential_420.jpg",
             "fixtures/jpeg/cmyk.jpg", "fixtures/images/animation.webp", "fixtures/images/comment.gif",
             "fixtures/images/attributes.exr", "fixtures/tiff/jpeg_strip.tif", "fixtures/tiff/tile_lzw_narrow.tif",
             "fixtures/tiff/i32_zstd.tif"]
    for name in names:
        data = (folder / name).read_bytes()
        file = pathlib.Path(name).name
        (target / f"cut-{file}").write_bytes(data[: len(data) * 6 // 10])
        middle = len(data) * 55 // 100
        (target / f"flipped-{file}").write_bytes(data[:middle] + bytes([data[middle] ^ 0x5A]) + data[middle + 1 :])
        (target / f"head-{file}").write_bytes(data[:20] + bytes([data[20] ^ 0xFF]) + data[21:])


def write(folder, repository):
    """Writes all inputs into `folder`, which does not exist yet."""
    folder.mkdir()
    shutil.copytree(repository / "fixtures", folder / "fixtures", ignore=shutil.ignore_patterns("*.py", "*.json", "*.md"))
    for store in json.loads((repository / "fixtures/zarr/stores.json").read_text()):
        for name, digits in store["files"].items():
            file = folder / "stores" / f"{store['name']}.zarr" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(bytes.fromhex(digits))
    write_images(folder)
    for name, writer in {"tiff": write_tiffs, "volumes": write_volumes, "numbers": write_numbers}.items():
        (folder / name).mkdir()
        writer(folder / name)
    damage(folder)
