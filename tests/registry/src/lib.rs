//! The attribute `#[test]` of the test suite.

use proc_macro::{TokenStream, TokenTree};

/// Registers the function, with the path of its module, as a `crate::harness::Test`. The function is not changed.
#[proc_macro_attribute]
pub fn test(_: TokenStream, function: TokenStream) -> TokenStream {
    let is_fn =
        |token: &TokenTree| matches!(token, TokenTree::Ident(word) if word.to_string() == "fn");
    let name = function.clone().into_iter().skip_while(|token| !is_fn(token)).nth(1);
    let name = name.expect("#[test] needs a function").to_string();
    let registration = format!(
        "::inventory::submit! {{
            crate::harness::Test {{ module: ::std::module_path!(), name: \"{name}\", run: {name} }}
        }}"
    );
    let registration: TokenStream = registration.parse().expect("invalid generated code");
    [function, registration].into_iter().collect()
}
