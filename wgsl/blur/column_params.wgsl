// The parameters of passes along y or z. A row holds all samples of one position of the axis: a row of pixels along y,
// a slice along z. Its samples are processed in fours, whatever their channels.

#import blur/rounding
#import shared/edge

struct ColumnParams {
    quads: u32,    // samples of a row / 4, including padding
    len: u32,      // rows along the axis
    outer: u32,    // number of times there are `len` rows: slices along y, 1 along z
    run: u32,      // consecutive rows that an invocation computes
    runs: u32,     // runs along the axis
    radius: u32,   // radius of the window, in rows
    edge: u32,     // see `edge_position`
    channels: u32,
    rounding: Rounding,
    fill: vec4<u32>, // the sample outside, by channel, for CONSTANT
    gap_start: u32, // for `columns_u16`: runs before those that the dispatch leaves out
    gap_runs: u32, // number of runs that it leaves out
    unused: vec2<u32>,
}

// Four samples of a row outside, from sample 4 * `quad` on, for CONSTANT.
fn fill_quad(quad: u32) -> vec4<u32> {
    var samples: vec4<u32>;
    for (var lane = 0u; lane < 4u; lane++) {
        samples[lane] = params.fill[(4u * quad + lane) % params.channels];
    }
    return samples;
}
