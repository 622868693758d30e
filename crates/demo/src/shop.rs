//! A shop whose tools go wrong on purpose, each in a way of its own, so that one can see what rules
//! for failed steps do about it. Nothing of it is kept.

use futures::future::BoxFuture;
use kernel::contracts::Tool;
use kernel::tool::call::{Call, Caller, OutputKind, Pace, Reach, ToolError, ToolOutput, ToolSpec};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What the shop remembers while its process lives.
#[derive(Debug, Default)]
struct Shop {
    /// Whether a quote was asked for before.
    has_quoted: AtomicBool,
    /// Whether the rates are those of today.
    has_rates: AtomicBool,
    /// What was paid, by order.
    payments: Mutex<BTreeMap<String, Value>>,
}

/// What a tool does with its arguments.
type Act = fn(&Shop, &Value) -> Result<Value, ToolError>;

struct ShopTool {
    spec: Arc<ToolSpec>,
    shop: Arc<Shop>,
    act: Act,
}

impl Tool for ShopTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        _caller: &'a Caller,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let output = (self.act)(&self.shop, &call.arguments).map(ToolOutput::Value);
        Box::pin(std::future::ready(output))
    }
}

pub fn shop() -> Vec<Arc<dyn Tool>> {
    let shop = Arc::new(Shop::default());
    let tool = |name: &str, about: &str, reach: Reach, inputs: &[&str], act: Act| {
        let spec = Arc::new(spec(name, about, reach, inputs));
        let tool: Arc<dyn Tool> = Arc::new(ShopTool { spec, shop: shop.clone(), act });
        tool
    };
    let reads = Reach::Reads;
    let writes = Reach::Writes;
    vec![
        tool("shop::quote", "Says what an item costs.", reads, &["item"], quote),
        tool("shop::convert", "Converts a price, by the rates of today.", reads, &["to"], convert),
        tool("shop::refresh_rates", "Gets the rates of today.", writes, &[], refresh_rates),
        tool("shop::pay", "Pays for an order.", writes, &["order"], pay),
        tool("shop::find_payment", "Looks for a payment.", reads, &["order"], find_payment),
        tool("shop::ship", "Ships an order.", writes, &["order", "country"], ship),
    ]
}

fn spec(name: &str, about: &str, reach: Reach, inputs: &[&str]) -> ToolSpec {
    let text = |name: &&str| ((*name).to_owned(), json!({"type": "string"}));
    let properties: serde_json::Map<String, Value> = inputs.iter().map(text).collect();
    let schema = json!({"type": "object", "properties": properties, "required": inputs});
    ToolSpec {
        name: name.into(),
        title: name.to_owned(),
        description: about.to_owned(),
        input_schema: Arc::new(schema),
        output_schema: None,
        reach,
        idempotent: false,
        tags: vec!["shop".to_owned()],
        pace: Pace::Quick,
        yields: OutputKind::Value,
        unrecorded: false,
        listed: None,
    }
}

/// Fails the first time, for a reason that passes.
fn quote(shop: &Shop, arguments: &Value) -> Result<Value, ToolError> {
    match shop.has_quoted.swap(true, Ordering::SeqCst) {
        true => Ok(json!({"item": arguments["item"], "price": 20})),
        false => Err(ToolError::failed("HttpStatus", "the shop answered 503").passing()),
    }
}

/// Fails as long as the rates are of yesterday.
fn convert(shop: &Shop, arguments: &Value) -> Result<Value, ToolError> {
    match shop.has_rates.load(Ordering::SeqCst) {
        true => Ok(json!({"price": 23, "currency": arguments["to"]})),
        false => Err(ToolError::failed("StaleRates", "the rates are of yesterday")),
    }
}

fn refresh_rates(shop: &Shop, _arguments: &Value) -> Result<Value, ToolError> {
    shop.has_rates.store(true, Ordering::SeqCst);
    Ok(json!({"rates": "of today"}))
}

/// Takes the money; the answer to the first payment is lost.
fn pay(shop: &Shop, arguments: &Value) -> Result<Value, ToolError> {
    let mut payments = shop.payments.lock().unwrap_or_else(PoisonError::into_inner);
    let is_first = payments.is_empty();
    let order = arguments["order"].as_str().unwrap_or_default().to_owned();
    let receipt = json!({"paid": true, "receipt": format!("R-{}", payments.len() + 1)});
    payments.insert(order, receipt.clone());
    match is_first {
        true => Err(ToolError::unknown("AnswerLost", "the connection broke before the answer")),
        false => Ok(receipt),
    }
}

fn find_payment(shop: &Shop, arguments: &Value) -> Result<Value, ToolError> {
    let payments = shop.payments.lock().unwrap_or_else(PoisonError::into_inner);
    let found = arguments["order"].as_str().and_then(|order| payments.get(order));
    Ok(found.cloned().unwrap_or_else(|| json!({"paid": false})))
}

/// Wants a country's code.
fn ship(_shop: &Shop, arguments: &Value) -> Result<Value, ToolError> {
    let country = arguments["country"].as_str().unwrap_or_default();
    if country.len() == 2 && country.chars().all(|letter| letter.is_ascii_uppercase()) {
        return Ok(json!({"order": arguments["order"], "shipped": country}));
    }
    let message = format!("`{country}` is no code of a country");
    Err(ToolError::failed("UnknownCountry", message).hint("write two letters, such as `FR`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tool_fails_in_its_own_way_and_can_be_fixed() {
        let shop = Shop::default();
        let name = |error: ToolError| error.fault.name;
        assert!(quote(&shop, &json!({"item": "x"})).unwrap_err().fault.passing);
        assert_eq!(quote(&shop, &json!({"item": "x"})).unwrap()["price"], 20);
        assert_eq!(convert(&shop, &json!({"to": "EUR"})).map_err(name).unwrap_err(), "StaleRates");
        refresh_rates(&shop, &json!({})).unwrap();
        assert!(convert(&shop, &json!({"to": "EUR"})).is_ok());
        let order = json!({"order": "17"});
        assert_eq!(find_payment(&shop, &order).unwrap()["paid"], false);
        assert_eq!(pay(&shop, &order).map_err(name).unwrap_err(), "AnswerLost");
        assert_eq!(find_payment(&shop, &order).unwrap()["paid"], true, "it was paid all the same");
        assert!(pay(&shop, &json!({"order": "18"})).is_ok());
        assert!(ship(&shop, &json!({"order": "17", "country": "Germny"})).is_err());
        assert!(ship(&shop, &json!({"order": "17", "country": "DE"})).is_ok());
    }
}
