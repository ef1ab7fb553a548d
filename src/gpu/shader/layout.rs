//! Host structs that mirror WGSL structs.

/// A host struct that mirrors a WGSL struct. [`shader_struct!`](crate::shader_struct) implements it.
pub trait ShaderStruct: bytemuck::Pod {
    /// The struct's name, here and in the WGSL.
    const NAME: &'static str;
    /// Each field's name and byte offset.
    const FIELDS: &'static [(&'static str, usize)];
}

/// No uniform.
impl ShaderStruct for () {
    const NAME: &'static str = "";
    const FIELDS: &'static [(&'static str, usize)] = &[];
}

/// Declares a `#[repr(C)]` plain-data struct. Its fields and offsets are compared with the WGSL struct of
/// the same name whenever it is bound.
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
