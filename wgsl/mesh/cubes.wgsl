// Marching cubes on one bit per point, inside or not: the surface of a slab as shared vertices and triangles.
//
// In: samples of a slab. Out: positions, normals, and triangles as vertex numbers, in the canonical order
// (src/kernels/mesh/mod.rs). Chosen for every volume on a GPU; the host splits it into slabs that fit.
//
//   classify, classify_u8   one bit per point: inside or not
//   validate                one bit per cell: no corner is NaN (HAS_NAN only)
//   resolve                 which variant a cell is (EXACT only)
//   count                   vertices and triangles per word and per block, by popcounts
//   scan                    where each block's begin, the list of active blocks, the totals
//   vertices                where crossed edges are crossed
//   vertex_normals          the gradient there
//   faces                   vertex numbers on the edges of each cell
//
// A word is 32 points along x, a block the SIZE words of one workgroup. Active blocks have something to
// emit; the host dispatches a workgroup for each once it has read the totals.

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

// How samples are stored: 0 u8, 1 i8, 2 u16, 3 i16, 4 f32.
const KIND = 0u;
// Whether some samples are NaN.
const HAS_NAN = false;
// Whether the trilinear field decides what is joined where a cell's corners do not tell.
const EXACT = false;

// Words of a block, invocations of a workgroup.
const SIZE = 256u;

struct SlabParams {
    // Samples of a row and rows of a slice.
    width: u32,
    height: u32,
    // Points along x, y and z of the whole volume: the samples, and `pad` more on every side.
    points_x: u32,
    points_y: u32,
    points_z: u32,
    pad: u32,
    // Words of a row, words of a slice.
    words: u32,
    slice_words: u32,
    // The first slice of points here in the whole volume, slices at hand, layers of cells.
    first: u32,
    slices: u32,
    layers: u32,
    // slice in `volume` = slice here + sample_z
    sample_z: i32,
    // Rows of samples of each slice in `volume`: the first, and how many. Rows of points that this
    // dispatch reads samples for.
    volume_y: u32,
    volume_rows: u32,
    start_y: u32,
    end_y: u32,
    // Words whose vertices are numbered, words whose vertices are emitted, blocks.
    numbered: u32,
    owned: u32,
    blocks: u32,
    // Where `starts` begins in `blocks`.
    starts: u32,
    // Emission: the active blocks of this dispatch, and what comes before them in the slab.
    first_active: u32,
    active_blocks: u32,
    vertex_start: u32,
    triangle_start: u32,
    // Vertices of all slabs before.
    first_vertex: u32,
    // Inside is greater than the threshold; the surface passes between samples where they are `level`.
    threshold: f32,
    level: f32,
    spacing_x: f32,
    spacing_y: f32,
    spacing_z: f32,
    // 1 / spacing.
    per_step_x: f32,
    per_step_y: f32,
    per_step_z: f32,
    origin_x: f32,
    origin_y: f32,
    origin_z: f32,
    // Always 0, which the compiler cannot know.
    zero: u32,
}

@group(0) @binding(0) var<uniform> params: SlabParams;
@group(0) @binding(1) var<storage, read> volume: array<u32>;
@group(0) @binding(2) var<storage, read> volume4: array<vec4<u32>>;
// Planes of one bit per point, a word 32 points:
//   inside    slices                              greater than the threshold
//   numbers   slices + 1, from one lower on       not NaN            (HAS_NAN only)
//   valid     layers + 2, from one lower on       a cell without NaN (HAS_NAN only)
//   variants  8 times layers                      see mesh/variants  (EXACT only)
@group(0) @binding(3) var<storage, read_write> bits: array<u32>;
// For each word, where its vertices begin:
//   bits  0..14   its first vertex in the block
//   bits 15..20   vertices on edges along x
//   bits 21..26   vertices on edges along y
// Before `count`, where EXACT: of words with ambiguous cells, discs beyond the first of such a cell.
@group(0) @binding(4) var<storage, read_write> starts: array<u32>;
// Tables and blocks, in words; `starts` is the end of the same buffer, so that no pass takes more than
// four storage buffers, which is all that some devices grant:
//   0 .. CASE_INFO          two words per case: 15 edge numbers of 4 bits, the corners of its triangles
//   CASE_INFO ..            one word per case:
//     bits  0..3              triangles
//     bits  4..7              loops of crossed edges but one
//     bits  8..13             the faces whose corners alternate
//     bit  15                 whether it has variants
//     bits 16..31             its first variant
//   VARIANTS ..             see mesh/variants
//   section(i, ..)          one word per block, see below
//   section(TOTALS, 0..3)   vertices to emit, triangles, active blocks, cells with NaN
//   params.starts ..        `starts`
@group(0) @binding(5) var<storage, read_write> blocks: array<u32>;
@group(0) @binding(6) var<storage, read_write> positions: array<f32>;
@group(0) @binding(7) var<storage, read_write> normals: array<f32>;
@group(0) @binding(8) var<storage, read_write> triangles: array<u32>;

const CASE_INFO = 512u;
const HAS_VARIANTS = 0x8000u;
const SECTIONS = 4148u;

// The sections of `blocks`: `count` writes how many there are in each block, `scan` turns that into where
// they begin.
const VERTICES = 0u;
const TRIANGLES = 1u;
// The numbers of the active blocks.
const ACTIVE = 2u;
const NAN_CELLS = 3u;
const TOTALS = 4u;
