//! The attribute macros of mainstay. Use them through the crate `mainstay`, which exports them.

mod duration;
mod faults;
mod function;
mod options;
mod step;
mod types;
mod workflow;

use proc_macro::TokenStream;

/// W
#[proc_macro_attribute]
pub fn workflow(options: TokenStream, item: TokenStream) -> TokenStream {
    finish(workflow::expand(options.into(), item.into()))
}

/// S
#[proc_macro_attribute]
pub fn step(options: TokenStream, item: TokenStream) -> TokenStream {
    finish(step::expand(options.into(), item.into()))
}

fn finish(expanded: syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    expanded.unwrap_or_else(|error| error.to_compile_error()).into()
}
