//! Values as the judge reads them, with blobs loaded.

use super::journal::Started;
use kernel::contracts::Blobs;
use kernel::values::datum::DatumValue;
use kernel::values::ids::{ContentHash, RealmId};
use serde_json::Value;

/// What a run was given; none if its blob cannot be read.
pub async fn input_of(started: &Started, realm: &RealmId, blobs: &dyn Blobs) -> Option<Value> {
    match &started.input.held {
        DatumValue::Blob(blob) => {
            let bytes = blobs.get(realm, &blob.hash).await.ok()??;
            serde_json::from_slice(&bytes).ok()
        }
        DatumValue::Value(_) | DatumValue::Object(_) | DatumValue::Array(_) => {
            Some(started.input.to_value())
        }
    }
}

/// A value as a person wants to read it: with its blob opened, if it is one.
pub async fn opened(value: &Value, realm: &RealmId, blobs: &dyn Blobs) -> Value {
    let Some(hash) = value.as_str().and_then(|text| text.strip_prefix("blob://")) else {
        return value.clone();
    };
    match blobs.get(realm, &ContentHash::from(hash)).await {
        Ok(Some(bytes)) => serde_json::from_slice(&bytes).unwrap_or_else(|_| value.clone()),
        Ok(None) | Err(_) => value.clone(),
    }
}
