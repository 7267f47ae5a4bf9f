//! diesel's tests are marked with a macro of a crate that is in no registry: here a test is a plain one.

use proc_macro::TokenStream;

#[proc_macro_attribute]
pub fn test(_: TokenStream, function: TokenStream) -> TokenStream {
    let mut marked: TokenStream = "#[::core::prelude::v1::test]".parse().expect("an attribute");
    marked.extend(function);
    marked
}
