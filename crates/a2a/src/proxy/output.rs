//! The output of the proxy as its caller gets it: large parts are opened, and what a server of
//! plain JSON-RPC gave is what it was.

use crate::state::A2a;
use edge::views::content::whole;
use kernel::tool::call::Caller;
use serde_json::Value;

/// In `_meta` of an output: the server's result was what is now `structuredContent`, alone.
const PLAIN: &str = "waypost.dev/plain";
const RESULT: &str = "mcp_result";

/// An output with its large parts in it; any other answer as it is.
pub(crate) async fn opened(a2a: &A2a, caller: &Caller, mut output: Value) -> Value {
    let is_output = output.get("success").is_some_and(Value::is_boolean);
    let Some(result) = output.get_mut(RESULT).filter(|_| is_output) else { return output };
    let read = whole(&a2a.server.engine, caller, result.take()).await;
    *result = plain(read);
    output
}

/// A result as the server gave it.
fn plain(mut result: Value) -> Value {
    let is_plain = result["_meta"][PLAIN] == true;
    match result.get_mut("structuredContent").filter(|_| is_plain) {
        Some(given) => given.take(),
        None => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_plain_result_is_what_it_was() {
        let given = json!({"stdout": "hi"});
        let kept = json!({"content": [{"type": "text", "text": "x"}], "structuredContent": given,
            "_meta": {PLAIN: true}});
        assert_eq!(plain(kept), given);
        let own = json!({"content": [], "structuredContent": given});
        assert_eq!(plain(own.clone()), own);
        assert_eq!(plain(json!("blob://x")), json!("blob://x"));
    }
}
