//! What is done in each scenario of the suite. `node .. list --client` names them; what one wants
//! is in its description and in its checks.

use super::assignment::Assignment;
use super::client::Client;
use engine::catalog::schema::JsonSchemas;
use kernel::tool::call::InputResponses;
use kernel::tool::schema::Schemas;
use serde_json::{Value, json};

/// Here the server, or the one that gives out tokens, must not be trusted: it is right not to get
/// through, and wrong to.
const REFUSED: &[&str] = &[
    "auth/iss-normalized",
    "auth/iss-supported-missing",
    "auth/iss-unexpected",
    "auth/iss-wrong-issuer",
    "auth/metadata-issuer-mismatch",
    "auth/resource-mismatch",
    "auth/scope-retry-limit",
];

/// Extensions that the product does not speak.
const NOT_SPOKEN: &[&str] = &[
    "auth/client-credentials-jwt",
    "auth/dpop",
    "auth/dpop-nonce",
    "auth/enterprise-managed-authorization",
    "auth/wif-jwt-bearer",
];

/// How long a server may take to have the stream on which it asks.
const STREAM_MS: u64 = 3_000;

/// Plays a scenario; an error says what did not go as it should on our side.
pub(super) async fn play(assignment: &Assignment, client: &Client) -> Result<(), String> {
    let scenario = assignment.scenario.as_str();
    if NOT_SPOKEN.contains(&scenario) {
        return Err("the product does not speak this extension".to_owned());
    }
    if REFUSED.contains(&scenario) {
        return refused(client).await;
    }
    client.ready().await?;
    match scenario {
        // To connect and to list is all.
        "initialize" | "request-metadata" => Ok(()),
        "tools_call" => tools_call(client).await,
        "elicitation-sep1034-client-defaults" => form(client).await,
        "sse-retry" => lost_stream(client).await,
        "sep-2322-client-request-state" => rounds(client).await,
        "http-standard-headers" => everything(client).await,
        "http-custom-headers" => given_calls(assignment, client).await,
        "http-invalid-tool-headers" => usable_tools(client).await,
        "json-schema-ref-no-deref" => foreign_schemas(client),
        "json-schema-2020-12-preservation" => echoed_schema(client).await,
        scenario if scenario.starts_with("auth/") => behind_a_login(client).await,
        _ => Err("nobody here knows what to do in this scenario".to_owned()),
    }
}

/// It ends without a connection.
async fn refused(client: &Client) -> Result<(), String> {
    match client.ready().await {
        Ok(()) => Err("connected to what must be refused".to_owned()),
        Err(why) => {
            println!("refused, as it should be: {why}");
            Ok(())
        }
    }
}

async fn tools_call(client: &Client) -> Result<(), String> {
    let sum = client.call("add_numbers", json!({"a": 2, "b": 3})).await?;
    says(&sum, "The sum of 2 and 3 is 5")
}

/// A form of which nothing is filled in, because every field has a value already.
async fn form(client: &Client) -> Result<(), String> {
    client.settle(STREAM_MS).await;
    let done = client.call("test_client_elicitation_defaults", nothing()).await?;
    says(&done, "Elicitation completed")
}

/// A call whose stream ends before its answer.
async fn lost_stream(client: &Client) -> Result<(), String> {
    client.settle(STREAM_MS).await;
    let done = client.call("test_reconnection", nothing()).await?;
    says(&done, "Reconnection test completed")
}

/// Calls that want something first, and one between the rounds of another: nothing of those may go
/// with it.
async fn rounds(client: &Client) -> Result<(), String> {
    let given: InputResponses = client.wanted("test_mrtr_echo_state", &nothing()).await?;
    says(&client.call("test_mrtr_unrelated", nothing()).await?, "unrelated-ok")?;
    says(&client.go_on("test_mrtr_echo_state", nothing(), given).await?, "echo-state-ok")?;
    says(&client.call("test_mrtr_no_state", nothing()).await?, "no-state-ok")?;
    says(&client.call("test_mrtr_no_result_type", nothing()).await?, "no-result-type-test-ok")
}

/// Every request that there is about something of a server's: each tool, resource and prompt.
async fn everything(client: &Client) -> Result<(), String> {
    usable_tools(client).await?;
    let resources = client.read_resources().await?;
    let prompts = client.get_prompts().await?;
    if resources == 0 || prompts == 0 {
        return Err(format!("{resources} resources and {prompts} prompts are listed"));
    }
    Ok(())
}

/// The calls that the suite hands out.
async fn given_calls(assignment: &Assignment, client: &Client) -> Result<(), String> {
    let calls = assignment.context["toolCalls"].as_array().filter(|calls| !calls.is_empty());
    for call in calls.ok_or("the suite hands out no calls")? {
        let name = call["name"].as_str().unwrap_or_default();
        client.call(name, call["arguments"].clone()).await?;
    }
    Ok(())
}

/// Every tool that the product does not leave out.
async fn usable_tools(client: &Client) -> Result<(), String> {
    let tools = client.tools();
    if tools.is_empty() {
        return Err("there are no tools".to_owned());
    }
    for tool in tools {
        let spec = tool.spec();
        client.call(spec.name.as_str(), arguments(&spec.input_schema)).await?;
    }
    Ok(())
}

/// Schemas that lead elsewhere are compiled as for a call; whether that goes well is another
/// question, but nothing may be fetched.
fn foreign_schemas(client: &Client) -> Result<(), String> {
    let tool = client.tool("lookup_user")?;
    let schemas = JsonSchemas::default();
    let schema = &tool.spec().input_schema;
    if let Err(misfit) = schemas.compile(schema) {
        println!("not compiled: {}", misfit.message);
    }
    Ok(())
}

/// A tool's schema comes out as it came in.
async fn echoed_schema(client: &Client) -> Result<(), String> {
    let schema = client.tool("json_schema_2020_12_tool")?.spec().input_schema.clone();
    let echoed = client.call("json_schema_echo", json!({"schema": *schema})).await?;
    says(&echoed, "echoed")
}

async fn behind_a_login(client: &Client) -> Result<(), String> {
    let called = client.call("test-tool", nothing()).await?;
    says(&called, "test")
}

/// Whether a result says this.
fn says(result: &Value, expected: &str) -> Result<(), String> {
    let blocks = result["content"].as_array();
    let mut texts = blocks.into_iter().flatten().filter_map(|block| block["text"].as_str());
    if texts.any(|text| text.contains(expected)) {
        return Ok(());
    }
    Err(format!("`{expected}` was expected, and this came: {result}"))
}

fn nothing() -> Value {
    json!({})
}

/// A text for every argument that a tool must have.
fn arguments(schema: &Value) -> Value {
    let required = schema["required"].as_array();
    let names = required.into_iter().flatten().filter_map(Value::as_str);
    Value::Object(names.map(|name| (name.to_owned(), json!("x"))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_result_are_its_text_parts() {
        let result = json!({"content": [{"type": "image"}, {"type": "text", "text": "all done"}]});
        assert_eq!(says(&result, "done"), Ok(()));
        assert!(says(&result, "gone").is_err());
        assert!(says(&json!({}), "").is_err());
    }

    #[test]
    fn only_required_arguments_are_given() {
        let schema = json!({"properties": {"a": {}, "b": {}}, "required": ["b"]});
        assert_eq!(arguments(&schema), json!({"b": "x"}));
        assert_eq!(arguments(&json!({"type": "object"})), json!({}));
    }
}
