//! Tools: the built-in ones, by family, those of the demo's server (`demo`), and those of other
//! servers (`remote`). A new tool is one file in its family and one line in that family's `all()`;
//! every door, the model's prompt and the docs read the catalog that this feeds.

mod arguments;
mod trace;
mod published;
#[cfg(test)]
mod calls;
mod math;
mod validate;
mod test;
mod events;
mod case;
pub mod demo;
pub mod http;
pub mod remote;

use kernel::contracts::Tool;
use std::sync::Arc;

pub use http::HttpSettings;

/// All built-in tools. `http` says which hosts `http::request` may talk to.
pub fn builtin(http: HttpSettings) -> Vec<Arc<dyn Tool>> {
    let mut tools = math::all();
    tools.extend(validate::all());
    tools.extend(test::all());
    tools.extend(events::all());
    tools.extend(case::all());
    tools.extend(http::all(http));
    tools
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::call::Reach;

    #[test]
    fn the_catalog_is_what_the_docs_promise() {
        let tools = builtin(HttpSettings::default());
        let listed: Vec<(&str, Reach, bool)> = tools
            .iter()
            .map(|tool| {
                let spec = tool.spec();
                (spec.name.as_str(), spec.reach, spec.idempotent)
            })
            .collect();
        assert_eq!(
            listed,
            [
                ("math::add", Reach::Reads, true),
                ("validate::is_positive", Reach::Reads, true),
                ("test::always_fail", Reach::Reads, true),
                ("events.publish", Reach::Writes, true),
                ("case.raiseTicket", Reach::Writes, true),
                ("http::request", Reach::Writes, false),
            ]
        );
    }
}
