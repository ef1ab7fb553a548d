// Checks the GLB files that gpuproc writes: the Khronos validator reports no issues, and the loader of three.js finds the
// triangles of gpuproc's PLY output.
//
//   node check.mjs PROGRAM
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import assert from "node:assert/strict";
import validator from "gltf-validator";
import { MeshoptDecoder } from "meshoptimizer";
import { Box3, Vector3 } from "three";
import { GLTFLoader } from "three/addons/loaders/GLTFLoader.js";

const program = process.argv[2];
const folder = mkdtempSync(join(tmpdir(), "gltf-"));
const path = (name) => join(folder, name);

// Runs `gpuproc mesh`.
function mesh(line) {
    const words = ["mesh", ...line.split(" "), "--device", "cpu"];
    execFileSync(program, words, { cwd: folder, stdio: "pipe" });
}

// The triangles of a binary PLY file by gpuproc, as corner positions.
function readPly(name) {
    const bytes = readFileSync(path(name));
    const header = bytes.toString("latin1", 0, bytes.indexOf("end_header\n") + 11);
    const count = (element) => Number(header.match(`element ${element} (\\d+)`)[1]);
    const sizes = { float: 4, uchar: 1 };
    const vertex = header.slice(header.indexOf("element vertex"), header.indexOf("element face"));
    const stride = [...vertex.matchAll(/property (\w+) /g)].reduce((sum, [, type]) => sum + sizes[type], 0);
    const positions = [];
    for (let i = 0; i < count("vertex"); i++) {
        positions.push([0, 4, 8].map((at) => bytes.readFloatLE(header.length + i * stride + at)));
    }
    const faces = header.length + count("vertex") * stride;
    const triangles = [];
    for (let i = 0; i < count("face"); i++) {
        triangles.push([1, 5, 9].map((at) => bytes.readUInt32LE(faces + 13 * i + at)));
    }
    return triangles.map((triangle) => triangle.map((corner) => positions[corner]));
}

// Validates a GLB file and returns the report of the validator.
async function validate(name) {
    const options = { uri: name, maxIssues: 0 };
    const report = await validator.validateBytes(new Uint8Array(readFileSync(path(name))), options);
    // The validator does not support meshopt compression, so it reports the compressed buffer as unused. An empty surface
    // has an empty node.
    const known = ["UNSUPPORTED_EXTENSION", "UNUSED_OBJECT", "NODE_EMPTY"];
    const others = report.issues.messages.filter(({ code }) => !known.includes(code));
    assert.deepEqual(others, [], name);
    assert.equal(report.issues.numErrors, 0, name);
    return report.info;
}

// All meshes as three.js loads them, with their materials, and their triangles rotated to the axes of the volume.
async function load(name) {
    const loader = new GLTFLoader().setMeshoptDecoder(MeshoptDecoder);
    const bytes = readFileSync(path(name));
    const buffer = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
    const { scene } = await loader.parseAsync(buffer, "");
    scene.updateMatrixWorld(true);
    const meshes = [];
    scene.traverse((object) => {
        if (!object.isMesh) return;
        const { position, normal, color } = object.geometry.attributes;
        const index = object.geometry.index;
        // The up axis is y in glTF and z in the volume. The rotation rounds coordinates.
        const place = (i) => {
            const { x, y, z } = new Vector3().fromBufferAttribute(position, i).applyMatrix4(object.matrixWorld);
            return new Vector3(...[x, -z, y].map((v) => Math.fround(v) + 0));
        };
        const triangles = [];
        for (let i = 0; i < index.count; i += 3) {
            triangles.push([0, 1, 2].map((k) => place(index.getX(i + k)).toArray()));
        }
        meshes.push({ name: object.name, triangles, normal, color, material: object.material });
    });
    return meshes;
}

// Area, volume and bounding box, which do not depend on the order of the triangles.
function measure(triangles) {
    let [area, volume] = [0, 0];
    const box = new Box3();
    for (const triangle of triangles) {
        const [a, b, c] = triangle.map((corner) => new Vector3(...corner));
        [a, b, c].forEach((corner) => box.expandByPoint(corner));
        const normal = b.clone().sub(a).cross(c.clone().sub(a));
        area += normal.length() / 2;
        volume += normal.dot(a) / 6;
    }
    return { area, volume, box: [...box.min.toArray(), ...box.max.toArray()] };
}

function assertNear(found, expected, tolerance, name) {
    assert.equal(found.length, expected.length, `${name}: triangles`);
    const [one, other] = [measure(found), measure(expected)];
    const assertClose = (a, b, scale) => assert.ok(Math.abs(a - b) <= tolerance * scale, `${name}: found ${a}, expected ${b}`);
    assertClose(one.area, other.area, other.area);
    assertClose(one.volume, other.volume, Math.abs(other.volume) + other.area);
    one.box.forEach((v, i) => assertClose(v, other.box[i], 50));
}

// A volume of waves, a ramp for `--color-by`, and labels.
const dims = [40, 31, 22];
const at = (i) => [i % dims[0], Math.floor(i / dims[0]) % dims[1], Math.floor(i / dims[0] / dims[1])];
const fill = (value) => Uint8Array.from({ length: dims[0] * dims[1] * dims[2] }, (_, i) => value(...at(i)));
writeFileSync(path("v_40x31x22_uint8.raw"), fill((x, y, z) =>
    128 + 40 * (Math.sin(0.4 * x) * Math.cos(0.5 * y) + Math.sin(0.5 * y) * Math.cos(0.3 * z) + Math.sin(0.3 * z))));
writeFileSync(path("c_40x31x22_uint8.raw"), fill((x, y, z) => 4 * x + y + z));
writeFileSync(path("l_40x31x22_uint8.raw"), fill((x, y, z) =>
    Math.hypot(x - 20, y - 15, z - 11) > 10 ? 0 : 1 + 2 * (x > 18) + (y > 14)));
const volume = "v_40x31x22_uint8.raw";
try {
    await MeshoptDecoder.ready;
    const whole = (iso, flags = "") => {
        mesh(`${volume} --iso ${iso} ${flags} -o m.ply`.replace(/ +/g, " "));
        return readPly("m.ply");
    };
    const expected = whole(140);
    assert.ok(expected.length > 5000);

    for (const flags of ["", " --normals"]) {
        mesh(`${volume} --iso 140${flags} -o m.glb`);
        assert.equal((await validate("m.glb")).totalTriangleCount, expected.length);
        const [only, ...others] = await load("m.glb");
        assert.equal(others.length, 0);
        assert.deepEqual(only.triangles, expected);
        assert.ok(only.normal);

        mesh(`${volume} --iso 140${flags} --to glb-meshopt -o p.glb`);
        await validate("p.glb");
        const [packed] = await load("p.glb");
        assertNear(packed.triangles, expected, 1e-3, "packed");
        assert.equal(packed.normal !== undefined, flags !== "");
        const each = statSync(path("p.glb")).size / expected.length;
        assert.ok(each <= (flags === "" ? 6 : 8), `${each} bytes per triangle`);
    }

    mesh(`${volume} --iso 120,140,160 --color peachpuff,C3,#102030 -o m.glb`);
    await validate("m.glb");
    const three = await load("m.glb");
    assert.deepEqual(three.map(({ name }) => name), ["Isovalue_120", "Isovalue_140", "Isovalue_160"]);
    for (const [i, iso] of [120, 140, 160].entries()) {
        assert.deepEqual(three[i].triangles, whole(iso), `${iso}`);
        assert.equal(three[i].material.transparent, iso !== 160);
    }
    assert.equal(three[1].material.color.getHexString(), "d62728");

    mesh(`${volume} --iso 140 --color-by c_40x31x22_uint8.raw --palette jet -o m.glb`);
    await validate("m.glb");
    const [colored] = await load("m.glb");
    assert.deepEqual(colored.triangles, expected);
    assert.ok(colored.material.vertexColors && colored.color.count > 1000);

    mesh("l_40x31x22_uint8.raw --labels -o m.glb");
    await validate("m.glb");
    const labels = await load("m.glb");
    assert.deepEqual(labels.map(({ name }) => name), ["label_1", "label_2", "label_3", "label_4"]);
    const colors = new Set(labels.map(({ material }) => material.color.getHexString()));
    assert.equal(colors.size, 4);
    labels.forEach(({ triangles }) => assert.ok(measure(triangles).volume > 500));

    for (const format of ["glb", "glb-meshopt"]) {
        mesh(`${volume} --iso 255 --to ${format} -o e.glb`);
        await validate("e.glb");
        assert.deepEqual(await load("e.glb"), []);
    }
    console.log("GLB files are valid and load in three.js: plain, meshopt, several isovalues, colours, labels, empty");
} finally {
    rmSync(folder, { recursive: true });
}
