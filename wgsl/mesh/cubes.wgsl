// Marching cubes on one bit per point: the surface of a slab as shared vertices and triangles.
//
// In: samples of a slab. Out: positions, normals, and triangles as vertex numbers, in the canonical order
// (src/kernels/mesh/mod.rs). Used for all volumes on a GPU; the host splits them into pieces that fit.
//
//   classify, classify_u8   one bit per point: whether it is inside
//   validate                one bit per cell: whether no corner is NaN (HAS_NAN only)
//   resolve                 variants of ambiguous cells (EXACT only)
//   count                   counts vertices and triangles per word and per block, by popcounts
//   scan                    first vertex and triangle of each block, the list of active blocks, the totals
//   vertices                positions on the crossed edges
//   vertex_normals          normals from the gradient
//   faces                   triangles: vertex numbers on the edges of each cell
//
// A word is 32 points along x, a block the SIZE words of one workgroup. Active blocks have vertices or triangles; the
// host reads the totals and then dispatches a workgroup for each active block.

#import mesh/words
#import mesh/grid
#import mesh/samples
#import mesh/classify
#import mesh/validate
#import mesh/cells
#import mesh/wide
#import mesh/variants
#import mesh/prefix_sum
#import mesh/count
#import mesh/crossing
#import mesh/vertices
#import mesh/normals
#import mesh/faces

// Type of the samples: 0 u8, 1 i8, 2 u16, 3 i16, 4 f32.
const KIND = 0u;
// Whether some samples are NaN.
const HAS_NAN = false;
// Whether ambiguous cells get the topology of the trilinear field.
const EXACT = false;

// Words of a block and invocations of a workgroup.
const SIZE = 256u;

struct SlabParams {
    // Distance between samples, 1 / spacing, and corner of the volume's box, in x, y and z.
    spacing: vec4<f32>,
    per_step: vec4<f32>,
    origin: vec4<f32>,
    // Size of a slice in samples.
    width: u32,
    height: u32,
    // Points of the whole volume along x, y and z: the samples and `pad` further points on every side.
    points_x: u32,
    points_y: u32,
    points_z: u32,
    pad: u32,
    // Words of a row, and of a slice.
    words: u32,
    slice_words: u32,
    // Index of the slab's first slice in the whole volume, number of slices in the slab, number of layers of cells.
    first: u32,
    slices: u32,
    layers: u32,
    // Slice in `volume` minus slice of points in the slab.
    sample_z: i32,
    // First row of samples of each slice in `volume`, and number of rows. Range of rows of points whose samples this
    // dispatch reads.
    volume_y: u32,
    volume_rows: u32,
    start_y: u32,
    end_y: u32,
    // Number of words whose vertices are numbered, of words whose vertices are emitted, and of blocks.
    numbered: u32,
    owned: u32,
    blocks: u32,
    // Offset of `starts` in `blocks`.
    starts: u32,
    // For the emitting passes: active blocks of this dispatch, and vertices and triangles before them in the piece.
    first_active: u32,
    active_blocks: u32,
    vertex_start: u32,
    triangle_start: u32,
    // Number of vertices of all slabs before this one.
    first_vertex: u32,
    // Samples greater than the threshold are inside. The surface passes where the interpolated samples are `level`.
    threshold: f32,
    level: f32,
    // Always 0, but not known to the compiler.
    zero: u32,
}

@group(0) @binding(0) var<uniform> params: SlabParams;
@group(0) @binding(1) var<storage, read> volume: array<u32>;
@group(0) @binding(2) var<storage, read> volume4: array<vec4<u32>>;
// Planes of one bit per point, 32 points to a word:
//   inside    slices                              sample is greater than the threshold
//   numbers   slices + 1, from one lower on       sample is not NaN    (HAS_NAN only)
//   valid     layers + 2, from one lower on       cell has no NaN      (HAS_NAN only)
//   variants  8 times layers                      see mesh/variants    (EXACT only)
@group(0) @binding(3) var<storage, read_write> bits: array<u32>;
// The vertices of each word:
//   bits  0..14   first vertex, counted within the block
//   bits 15..20   number of vertices on edges along x
//   bits 21..26   number of vertices on edges along y
// With EXACT, before `count`, for words with ambiguous cells: number of discs after the first of each such cell.
@group(0) @binding(4) var<storage, read_write> starts: array<u32>;
// Tables and blocks, in words. `starts` is the end of the same buffer, so that no pass needs more than four storage
// buffers, the maximum of some devices:
//   0 .. CASE_INFO          two words per case: 15 edge numbers of 4 bits, the corners of its triangles
//   CASE_INFO ..            one word per case:
//     bits  0..3              triangles
//     bits  4..7              loops of crossed edges, minus one
//     bits  8..13             faces whose corners alternate
//     bit  15                 whether it has variants
//     bits 16..31             first variant
//   VARIANTS ..             see mesh/variants
//   section(i, ..)          one word per block, see below
//   section(TOTALS, 0..3)   vertices, triangles, active blocks, cells with NaN
//   params.starts ..        `starts`
@group(0) @binding(5) var<storage, read_write> blocks: array<u32>;
@group(0) @binding(6) var<storage, read_write> positions: array<f32>;
@group(0) @binding(7) var<storage, read_write> normals: array<f32>;
@group(0) @binding(8) var<storage, read_write> triangles: array<u32>;

const CASE_INFO = 512u;
const HAS_VARIANTS = 0x8000u;
const SECTIONS = 4148u;

// Sections of `blocks`. `count` writes the counts of each block, and `scan` replaces them by the first vertex and
// triangle.
const VERTICES = 0u;
const TRIANGLES = 1u;
// Indices of the active blocks.
const ACTIVE = 2u;
const NAN_CELLS = 3u;
const TOTALS = 4u;
