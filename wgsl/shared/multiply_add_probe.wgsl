// Computes a * b + c with `multiply_add`, to test whether it rounds once on a device.
//
// In: two factors and an addend for each invocation. Out: the sums. Runs once per device, before the first blur of f32.

#import shared/multiply_add

@group(0) @binding(0) var<storage, read> source: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> target_: array<vec4<f32>>;

@compute @workgroup_size(64)
fn probe(@builtin(local_invocation_index) local: u32) {
    target_[local] = multiply_add(source[3u * local], source[3u * local + 1u], source[3u * local + 2u]);
}
