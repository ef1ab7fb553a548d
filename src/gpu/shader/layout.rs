//! Host structs that mirror WGSL structs.

/// A host struct that mirrors a WGSL struct. [`shader_struct!`](crate::shader_struct) implements it.
pub trait ShaderStruct: bytemuck::Pod {
    /// Name of the struct, here and in WGSL.
    const NAME: &'static str;
    /// Name and byte offset of each field.
    const FIELDS: &'static [(&'static str, usize)];
}

/// Stands for no uniform.
impl ShaderStruct for () {
    const NAME: &'static str = "";
    const FIELDS: &'static [(&'static str, usize)] = &[];
}

/// Declares a `#[repr(C)]` struct of plain data. Its fields and offsets are compared with the WGSL struct of the same
/// name whenever it is bound.
#[macro_export]
macro_rules! shader_struct {
    ($(#[$meta:meta])* $vis:vis struct $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty),+ $(,)? }) => {
        $(#[$meta])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Default, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
        $vis struct $name { $($(#[$field_meta])* $vis $field: $type),+ }

        impl $crate::gpu::ShaderStruct for $name {
            const NAME: &'static str = stringify!($name);
            const FIELDS: &'static [(&'static str, usize)] =
                &[$((stringify!($field), ::std::mem::offset_of!($name, $field))),+];
        }
    };
}
