// Loads a sample of a row in any format.
//
// The importing shader declares CHANNELS, FROM, `params` and `source`.

#import shared/samples

fn sample(row: u32, x: u32, channel: u32) -> u32 {
    let at = (row * params.pitch + x) * CHANNELS + channel;
    if FROM == U8 {
        return (source[at >> 2u] >> ((at & 3u) * 8u)) & 0xffu;
    }
    if FROM == U16 {
        return (source[at >> 1u] >> ((at & 1u) * 16u)) & 0xffffu;
    }
    return source[at];
}
