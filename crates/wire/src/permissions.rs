//! Bodies of `/system/permissions`: what a subject may do, in the shape of an existing service.
//! Members for which policies have nothing are always null.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Whether a subject may do something. Members that are not listed are ignored.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PermissionQuery {
    /// Whom it is about, by subject; the caller, where nothing is said. Others are for
    /// administrators.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// Roles that the subject is taken to have beside its own; for administrators.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roles: Option<Vec<String>>,
    /// The realm, which must be that of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub realm: Option<String>,
    /// `waypost`, `integration` for records, or `*`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub area: Option<String>,
    /// The type of what it is done to, as policies write it, such as `Tool`; `check` requires it.
    /// In the area `integration` it is `query`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub functional_domain: Option<String>,
    /// The act, such as `call`; `check` requires it. Of `query` it is what is done with records:
    /// `listRootTypes`, `plan`, `find`, `count`, `save`, `delete` or `deleteMany`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// The name of what it is done to. Without it, one that no policy names is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_id: Option<String>,
    /// Who owns the session, or the session of the ask.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner_id: Option<String>,
    /// The type of the records, by its full name. Without it, the tool of the action is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_class: Option<String>,
    /// The arguments of the call. Without them, it is asked whether some call could be allowed. Of
    /// `query`, `rootType` in it is the type of the records, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<Map<String, Value>>,
}

/// Whether it may be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[schemars(inline)]
pub enum PermissionEffect {
    /// It may, perhaps once a person approved it.
    Allow,
    /// It may not.
    Deny,
}

/// How far an answer goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[schemars(inline)]
pub enum DecisionScope {
    /// Policies or roles say so.
    Exact,
    /// They say so under a condition.
    Scoped,
    /// Nothing permits it.
    Default,
}

/// The condition under which something may be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScopedConstraint {
    /// `APPROVAL`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Why a person must approve it.
    pub reason: String,
}

/// What is left of the records of a type. All of them hold together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct FilterConstraint {
    /// The query that records must fit; null where it names what the subject must not know of.
    pub and_filter_string: Option<String>,
    /// `AND`.
    pub join_op: String,
    /// The fields that do not exist; for administrators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excluded_fields: Option<Vec<String>>,
}

/// A policy or role that decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct MatchedRule {
    /// Its id.
    pub name: String,
    /// What it led to.
    pub determined_effect: PermissionEffect,
}

/// What is decided of one act.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PermissionCheck {
    /// Whether it may be done.
    pub decision: PermissionEffect,
    /// The same.
    pub final_effect: PermissionEffect,
    /// How far the answer goes.
    pub decision_scope: DecisionScope,
    /// The policy or role that decided; for administrators.
    pub winning_rule_name: Option<String>,
    /// Always null: policies have no order.
    pub winning_rule_priority: Option<i64>,
    /// Always null.
    pub winning_rule_final: Option<bool>,
    /// Whether there is a condition.
    pub scoped_constraints_present: bool,
    /// The conditions, where there are some.
    pub scoped_constraints: Option<Vec<ScopedConstraint>>,
    /// What is left of the records, where it is about records and not all is left.
    pub filter_constraints: Option<Vec<FilterConstraint>>,
    /// Always null.
    pub not_applicable: Option<Vec<Value>>,
    /// All that decided; for administrators.
    pub matched_rule_results: Option<Vec<MatchedRule>>,
    /// Always null: only policies that could apply are evaluated.
    pub evaluated_rules: Option<Vec<Value>>,
    /// Always null.
    pub na_label: Option<String>,
}

/// Acts, by area and by type of what they are done to.
pub type ActionsByDomain = BTreeMap<String, BTreeMap<String, Vec<String>>>;

/// What is decided of all acts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PermissionLandscape {
    /// What may be done: actions by area and domain.
    pub allow: ActionsByDomain,
    /// What may not be done.
    pub deny: ActionsByDomain,
    /// What is decided of each: by area, domain and action.
    pub decisions: BTreeMap<String, BTreeMap<String, BTreeMap<String, PermissionDecision>>>,
    /// Always null: there is one way to evaluate.
    pub eval_mode_used: Option<String>,
}

/// What is decided of one of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PermissionDecision {
    /// Whether it may be done.
    pub effect: PermissionEffect,
    /// How far the answer goes.
    pub decision_scope: DecisionScope,
    /// Whether there is a condition.
    pub scoped_constraints_present: bool,
    /// The conditions, where there are some.
    pub scoped_constraints: Option<Vec<ScopedConstraint>>,
    /// Always null.
    pub na_label: Option<String>,
    /// The policy or role that decided; for administrators.
    pub rule: Option<String>,
    /// Always null: policies have no order.
    pub priority: Option<i64>,
    /// Always null.
    pub final_rule: Option<bool>,
    /// Always null.
    pub source: Option<String>,
}
