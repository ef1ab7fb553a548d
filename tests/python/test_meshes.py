"""Surfaces against scikit-image, and their properties."""

import numpy as np
import pytest
from skimage import measure

import gpuproc as gp

SPACING = (3.0, 1.0, 0.5)


def ball(dtype=np.float32):
    z, y, x = np.mgrid[-9:10, -8:9, -7:8]
    return (60 - 10 * np.sqrt(x * x + y * y + z * z)).clip(0, None).astype(dtype)


def volume_of(verts, faces):
    """Volume in a mesh; positive if faces are counter-clockwise as seen from outside, with axes z, y, x."""
    a, b, c = (verts[faces[:, i]][:, ::-1].astype(float) for i in range(3))
    return np.einsum("ij,ij->", a, np.cross(b, c)) / 6


def is_closed(faces):
    """Whether every edge has one triangle on either side."""
    edges = {tuple(edge) for edge in np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])}
    return len(edges) == 3 * len(faces) and all((b, a) in edges for a, b in edges)


def rows(verts):
    return np.unique(verts.round(4), axis=0)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.float32, np.float64])
def test_marching_cubes_has_the_vertices_of_scikit_image(dtype):
    volume = ball(dtype)
    verts, faces, normals = gp.marching_cubes(volume, 20.5, spacing=SPACING)
    theirs, their_faces, their_normals, _ = measure.marching_cubes(volume.astype(np.float32), 20.5, spacing=SPACING)
    np.testing.assert_allclose(rows(verts), rows(theirs), atol=2e-4)
    assert len(faces) == len(their_faces) and is_closed(faces)
    assert volume_of(verts, faces) > 0
    np.testing.assert_allclose(volume_of(verts, faces), abs(volume_of(theirs, their_faces)), rtol=1e-3)
    np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1, atol=1e-5)
    centre = (np.array(volume.shape) - 1) / 2 * SPACING
    assert (((verts - centre) * normals).sum(1) > 0).all()
    assert verts.dtype == normals.dtype == np.float32 and faces.dtype == np.uint32


def test_faces_have_the_orientation_of_scikit_image():
    volume = ball()
    verts, faces, _ = gp.marching_cubes(volume, 20.5)
    theirs, their_faces, _, _ = measure.marching_cubes(volume, 20.5)
    assert np.sign(volume_of(verts, faces)) == np.sign(volume_of(theirs, their_faces))


def test_level_is_the_middle_by_default():
    volume = ball()
    middle = (volume.max() + volume.min()) / 2
    np.testing.assert_array_equal(gp.marching_cubes(volume)[0], gp.marching_cubes(volume, middle)[0])


def test_close_and_topology():
    volume = np.ones((4, 5, 6), np.uint8)
    assert len(gp.marching_cubes(volume, 0.5)[1]) == 0
    verts, faces, _ = gp.marching_cubes(volume, 0.5, close=True)
    assert is_closed(faces) and verts.min() == -0.5
    noise = np.random.default_rng(3).random((9, 9, 9)).astype(np.float32)
    classic, exact = (gp.marching_cubes(noise, 0.5, topology=t)[1] for t in ("classic", "exact"))
    assert len(classic) != len(exact)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32, np.int64, bool])
def test_label_meshes(dtype):
    labels = np.zeros((6, 7, 8), dtype)
    labels[1:3, 1:4, 2:5] = 1
    labels[3:5, 1:4, 2:5] = 1 if dtype is bool else 9
    meshes = gp.label_meshes(labels, smooth=0, spacing=SPACING)
    assert sorted(meshes) == sorted(set(np.unique(labels).tolist()) - {0})
    for label, (verts, faces) in meshes.items():
        assert is_closed(faces)
        np.testing.assert_allclose(volume_of(verts, faces), (labels == label).sum() * np.prod(SPACING), rtol=1e-5)
    smooth = gp.label_meshes(labels, spacing=SPACING)
    assert all(is_closed(faces) for _, faces in smooth.values())
    assert not np.array_equal(smooth[1][0], meshes[1][0])


def test_simplify():
    verts, faces, _ = gp.marching_cubes(ball(), 20.5)
    fewer_verts, fewer = gp.simplify(verts, faces, ratio=0.6)
    assert abs(len(fewer) - 0.6 * len(faces)) <= 2 and is_closed(fewer)
    np.testing.assert_allclose(volume_of(fewer_verts, fewer), volume_of(verts, faces), rtol=0.05)
    assert abs(len(gp.simplify(verts, faces.astype(np.int64), triangles=400)[1]) - 400) <= 2
    near = gp.simplify(verts, faces, max_error=0.1)[1]
    assert len(near) < len(faces)


def test_refused_arguments():
    volume = ball()
    verts, faces, _ = gp.marching_cubes(volume, 20)
    for call, message in [
        (lambda: gp.marching_cubes(volume, np.nan), "level: expected a finite number"),
        (lambda: gp.marching_cubes(volume, 1, spacing=(1, 0, 1)), "spacing is 0"),
        (lambda: gp.marching_cubes(volume, 1, spacing=(1, 1)), "spacing has 2 values"),
        (lambda: gp.marching_cubes(volume[0], 1), "expected a volume of 3 axes, found 2"),
        (lambda: gp.marching_cubes(volume, 1, topology="x"), "unknown topology"),
        (lambda: gp.label_meshes(volume), "cannot be labels"),
        (lambda: gp.label_meshes(np.full((2, 2, 2), -1)), "labels: expected 0 to"),
        (lambda: gp.simplify(verts, faces), "give ratio, triangles or max_error"),
        (lambda: gp.simplify(verts, faces, ratio=2), "ratio is 2"),
        (lambda: gp.simplify(verts, faces + len(verts), ratio=0.5), "a number of a vertex is not in 0 to"),
        (lambda: gp.simplify(verts, faces[:, :2], ratio=0.5), r"faces: expected an array of the shape \(N, 3\)"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
