// The entry point of filters that compute each sample of a grid from those around it.
//
// Layout: one invocation per word of `result`.
//
// The importing shader declares `result`, what `shared/keys` needs, `result_at`, which returns the bits of a result, and
// `params` with the number of words, `channels`, `width`, `pitch` (positions from one row to the next), `height` and
// `depth`. Results between `width` and `pitch` are 0.

#import shared/keys

const GROUP = 256u;

// The position of a sample along x, y and z.
fn position_of(sample: u32) -> vec3<u32> {
    let pixel = sample / params.channels;
    let row = pixel / params.pitch;
    return vec3(pixel % params.pitch, row % params.height, row / params.height);
}

@compute @workgroup_size(GROUP)
fn neighbourhood(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let word = (group.y * groups.x + group.x) * GROUP + local;
    if word >= params.words {
        return;
    }
    let samples = params.channels * params.pitch * params.height * params.depth;
    var packed = 0u;
    for (var i = 0u; i < PER_WORD; i++) {
        let sample = word * PER_WORD + i;
        if sample < samples {
            let position = position_of(sample);
            if position.x < params.width {
                let bits = result_at(position, sample % params.channels);
                packed = insertBits(packed, bits, BITS * i, BITS);
            }
        }
    }
    result[word] = packed;
}
