//! Tasks of a server behind ours, whose calls are recorded: a client sees what it would see without
//! us.

use crate::house::House;
use crate::mcp_place::{Place, forms, message, modern};
use crate::transparent::before;
use serde_json::{Value, json};

/// A server with tasks, and one that has it behind it under the same names.
struct Pair {
    direct: Place,
    through: House,
}

impl Pair {
    /// With what the settings of the one say of the other.
    async fn set(setting: &str) -> Self {
        let direct = Place::new("").await;
        let entry = format!("prefix = \"\"\n{setting}\n");
        let through = before(direct.router(), &entry, "it__broken").await;
        Self { direct, through }
    }

    /// The response through us to a client that can this.
    async fn ask(&self, method: &str, can: &Value, params: Value) -> Value {
        message(&self.through.send(modern(method, can, params)).await)
    }
}

#[tokio::test]
async fn a_tool_for_tasks_alone_is_refused_as_without_us() {
    let broken = json!({"name": "it__broken", "arguments": {}});
    for setting in ["", "trusted = true", "journal = false"] {
        let pair = Pair::set(setting).await;
        let direct = pair.direct.ask("tools/call", &forms(), broken.clone()).await;
        assert_eq!(direct["error"]["code"], -32021, "{direct}");
        let through = pair.ask("tools/call", &forms(), broken.clone()).await;
        assert_eq!(through["error"], direct["error"], "`{setting}`");
        // Who cannot declare tasks has them followed: the tool is called, and fails.
        let called =
            pair.through.post("/api/v1/tools/it__broken/call", json!({"arguments": {}})).await;
        assert!(called.text.contains("it is broken"), "`{setting}`: {called:?}");
    }
}
