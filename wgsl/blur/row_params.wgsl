// The parameters of passes along x.

#import blur/rounding
#import shared/edge

struct RowParams {
    width: u32,    // pixels a row
    height: u32,   // rows, of all slices
    pitch: u32,    // pixels from row to row, padding included: a multiple of 16
    tile: u32,     // pixels of a row that a workgroup computes
    tiles: u32,    // workgroups a row
    groups: u32,   // workgroups in all
    radius: u32,   // of the window, in pixels, with the zeros that pad the weights
    edge: u32,     // see `edge_position`
    rounding: Rounding,
    fill: vec4<u32>, // the sample outside, a channel, for CONSTANT
}
