// The parameters of passes along y or z. A row is whatever lies side by side between two positions of the axis:
// a row of pixels along y, a slice along z. Its samples are taken by fours, whatever their channels.

#import blur/rounding
#import shared/edge

struct ColumnParams {
    quads: u32,    // a row's samples / 4, padding included
    len: u32,      // rows along the axis
    outer: u32,    // times `len` rows: slices along y, 1 along z
    run: u32,      // consecutive rows that an invocation computes
    runs: u32,     // along the axis
    radius: u32,   // of the window, in rows
    edge: u32,     // see `edge_position`
    channels: u32,
    rounding: Rounding,
    fill: vec4<u32>, // the sample outside, a channel, for CONSTANT
}

// Four samples of a row outside, for CONSTANT, from sample 4 * `quad` on.
fn fill_quad(quad: u32) -> vec4<u32> {
    var samples: vec4<u32>;
    for (var lane = 0u; lane < 4u; lane++) {
        samples[lane] = params.fill[(4u * quad + lane) % params.channels];
    }
    return samples;
}
