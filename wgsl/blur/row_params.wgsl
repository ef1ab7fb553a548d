// The parameters of passes along x, and the number of rows of a position.
//
// The importing shader declares CHANNELS, the number of channels.

#import blur/rounding
#import shared/edge

struct RowParams {
    width: u32,    // pixels per row
    height: u32,   // rows, of all slices
    pitch: u32,    // pixels of a row with padding, a multiple of 16
    tile: u32,     // pixels of a row that a workgroup computes
    tiles: u32,    // workgroups per row
    groups: u32,   // workgroups in all
    radius: u32,   // radius of the window in pixels, with the zeros that pad the weights
    edge: u32,     // see `edge_position`
    rounding: Rounding,
    fill: vec4<u32>, // the sample outside, by channel, for CONSTANT
}

// A position has four lanes: the channels of a pixel, or with one channel the pixels of four rows, or with two channels
// those of two rows.
//
//     CHANNELS   lane 3   lane 2   lane 1   lane 0
//        1       row 3    row 2    row 1    row 0
//        2       row 1 b  row 1 a  row 0 b  row 0 a
//        3       -        b        g        r
//        4       a        b        g        r
const ROWS = select(1u, 4u / CHANNELS, CHANNELS < 3u);
