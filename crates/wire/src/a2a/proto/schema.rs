//! The messages of the official definition: the fields of each, by number, under the names that
//! ProtoJSON gives them. A test holds this table against `proto/a2a.proto`.

/// What a field holds.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// `string`.
    Text,
    Bytes,
    /// `bool`.
    Flag,
    /// `int32`.
    Whole,
    /// One of these, by its place.
    Word(&'static [&'static str]),
    /// `google.protobuf.Timestamp`.
    Moment,
    /// `google.protobuf.Struct`.
    Struct,
    /// `google.protobuf.Value`.
    Value,
    /// `map<string, string>`.
    Texts,
    /// A message of its own.
    Message(&'static Shape),
    /// Such messages by name.
    Named(&'static Shape),
}

/// A field of a message.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    pub number: u32,
    /// Its name in JSON.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// Whether there may be several.
    pub is_list: bool,
    /// Whether it is one of several of which a message has one.
    pub is_one_of: bool,
}

impl Field {
    const fn list(self) -> Self {
        Self { is_list: true, ..self }
    }

    const fn one_of(self) -> Self {
        Self { is_one_of: true, ..self }
    }
}

/// A message.
#[derive(Debug)]
pub struct Shape {
    /// Its name in the definition.
    pub name: &'static str,
    pub fields: &'static [Field],
}

const fn field(number: u32, name: &'static str, kind: Kind) -> Field {
    Field { number, name, kind, is_list: false, is_one_of: false }
}

const fn text(number: u32, name: &'static str) -> Field {
    field(number, name, Kind::Text)
}

const fn flag(number: u32, name: &'static str) -> Field {
    field(number, name, Kind::Flag)
}

const fn whole(number: u32, name: &'static str) -> Field {
    field(number, name, Kind::Whole)
}

const fn members(number: u32, name: &'static str) -> Field {
    field(number, name, Kind::Struct)
}

const fn message(number: u32, name: &'static str, shape: &'static Shape) -> Field {
    field(number, name, Kind::Message(shape))
}

/// The states of a task, each at its number.
pub const TASK_STATES: &[&str] = &[
    "TASK_STATE_UNSPECIFIED",
    "TASK_STATE_SUBMITTED",
    "TASK_STATE_WORKING",
    "TASK_STATE_COMPLETED",
    "TASK_STATE_FAILED",
    "TASK_STATE_CANCELED",
    "TASK_STATE_INPUT_REQUIRED",
    "TASK_STATE_REJECTED",
    "TASK_STATE_AUTH_REQUIRED",
];
/// Who writes messages, each at its number.
pub const ROLES: &[&str] = &["ROLE_UNSPECIFIED", "ROLE_USER", "ROLE_AGENT"];

/// A part of a message or an artifact.
pub static PART: Shape = Shape {
    name: "Part",
    fields: &[
        text(1, "text").one_of(),
        field(2, "raw", Kind::Bytes).one_of(),
        text(3, "url").one_of(),
        field(4, "data", Kind::Value).one_of(),
        members(5, "metadata"),
        text(6, "filename"),
        text(7, "mediaType"),
    ],
};
/// A message.
pub static MESSAGE: Shape = Shape {
    name: "Message",
    fields: &[
        text(1, "messageId"),
        text(2, "contextId"),
        text(3, "taskId"),
        field(4, "role", Kind::Word(ROLES)),
        message(5, "parts", &PART).list(),
        members(6, "metadata"),
        text(7, "extensions").list(),
        text(8, "referenceTaskIds").list(),
    ],
};
/// What a task made.
pub static ARTIFACT: Shape = Shape {
    name: "Artifact",
    fields: &[
        text(1, "artifactId"),
        text(2, "name"),
        text(3, "description"),
        message(4, "parts", &PART).list(),
        members(5, "metadata"),
        text(6, "extensions").list(),
    ],
};
/// How a task is.
pub static TASK_STATUS: Shape = Shape {
    name: "TaskStatus",
    fields: &[
        field(1, "state", Kind::Word(TASK_STATES)),
        message(2, "message", &MESSAGE),
        field(3, "timestamp", Kind::Moment),
    ],
};
/// A task.
pub static TASK: Shape = Shape {
    name: "Task",
    fields: &[
        text(1, "id"),
        text(2, "contextId"),
        message(3, "status", &TASK_STATUS),
        message(4, "artifacts", &ARTIFACT).list(),
        message(5, "history", &MESSAGE).list(),
        members(6, "metadata"),
    ],
};
/// The status of a task changed.
pub static STATUS_UPDATE: Shape = Shape {
    name: "TaskStatusUpdateEvent",
    fields: &[
        text(1, "taskId"),
        text(2, "contextId"),
        message(3, "status", &TASK_STATUS),
        members(4, "metadata"),
    ],
};
/// A task made something.
pub static ARTIFACT_UPDATE: Shape = Shape {
    name: "TaskArtifactUpdateEvent",
    fields: &[
        text(1, "taskId"),
        text(2, "contextId"),
        message(3, "artifact", &ARTIFACT),
        flag(4, "append"),
        flag(5, "lastChunk"),
        members(6, "metadata"),
    ],
};
/// What a message is answered with.
pub static SEND_MESSAGE_RESPONSE: Shape = Shape {
    name: "SendMessageResponse",
    fields: &[message(1, "task", &TASK).one_of(), message(2, "message", &MESSAGE).one_of()],
};
/// An event of a stream.
pub static STREAM_RESPONSE: Shape = Shape {
    name: "StreamResponse",
    fields: &[
        message(1, "task", &TASK).one_of(),
        message(2, "message", &MESSAGE).one_of(),
        message(3, "statusUpdate", &STATUS_UPDATE).one_of(),
        message(4, "artifactUpdate", &ARTIFACT_UPDATE).one_of(),
    ],
};
/// How a webhook is shown who sends.
pub static AUTHENTICATION_INFO: Shape =
    Shape { name: "AuthenticationInfo", fields: &[text(1, "scheme"), text(2, "credentials")] };
/// A webhook.
pub static PUSH_CONFIG: Shape = Shape {
    name: "TaskPushNotificationConfig",
    fields: &[
        text(1, "tenant"),
        text(2, "id"),
        text(3, "taskId"),
        text(4, "url"),
        text(5, "token"),
        message(6, "authentication", &AUTHENTICATION_INFO),
    ],
};
/// How a message is to be answered.
pub static SEND_CONFIGURATION: Shape = Shape {
    name: "SendMessageConfiguration",
    fields: &[
        text(1, "acceptedOutputModes").list(),
        message(2, "taskPushNotificationConfig", &PUSH_CONFIG),
        whole(3, "historyLength"),
        flag(4, "returnImmediately"),
    ],
};
/// `SendMessage` and `SendStreamingMessage`.
pub static SEND_MESSAGE_REQUEST: Shape = Shape {
    name: "SendMessageRequest",
    fields: &[
        text(1, "tenant"),
        message(2, "message", &MESSAGE),
        message(3, "configuration", &SEND_CONFIGURATION),
        members(4, "metadata"),
    ],
};
/// `GetTask`.
pub static GET_TASK_REQUEST: Shape = Shape {
    name: "GetTaskRequest",
    fields: &[text(1, "tenant"), text(2, "id"), whole(3, "historyLength")],
};
/// `ListTasks`.
pub static LIST_TASKS_REQUEST: Shape = Shape {
    name: "ListTasksRequest",
    fields: &[
        text(1, "tenant"),
        text(2, "contextId"),
        field(3, "status", Kind::Word(TASK_STATES)),
        whole(4, "pageSize"),
        text(5, "pageToken"),
        whole(6, "historyLength"),
        field(7, "statusTimestampAfter", Kind::Moment),
        flag(8, "includeArtifacts"),
    ],
};
/// The answer to `ListTasks`.
pub static LIST_TASKS_RESPONSE: Shape = Shape {
    name: "ListTasksResponse",
    fields: &[
        message(1, "tasks", &TASK).list(),
        text(2, "nextPageToken"),
        whole(3, "pageSize"),
        whole(4, "totalSize"),
    ],
};
/// `CancelTask`.
pub static CANCEL_TASK_REQUEST: Shape = Shape {
    name: "CancelTaskRequest",
    fields: &[text(1, "tenant"), text(2, "id"), members(3, "metadata")],
};
/// `SubscribeToTask`.
pub static SUBSCRIBE_REQUEST: Shape =
    Shape { name: "SubscribeToTaskRequest", fields: &[text(1, "tenant"), text(2, "id")] };
/// `GetTaskPushNotificationConfig`.
pub static GET_PUSH_CONFIG_REQUEST: Shape = Shape {
    name: "GetTaskPushNotificationConfigRequest",
    fields: &[text(1, "tenant"), text(2, "taskId"), text(3, "id")],
};
/// `DeleteTaskPushNotificationConfig`.
pub static DELETE_PUSH_CONFIG_REQUEST: Shape = Shape {
    name: "DeleteTaskPushNotificationConfigRequest",
    fields: &[text(1, "tenant"), text(2, "taskId"), text(3, "id")],
};
/// `ListTaskPushNotificationConfigs`.
pub static LIST_PUSH_CONFIGS_REQUEST: Shape = Shape {
    name: "ListTaskPushNotificationConfigsRequest",
    fields: &[text(4, "tenant"), text(1, "taskId"), whole(2, "pageSize"), text(3, "pageToken")],
};
/// The answer to it.
pub static LIST_PUSH_CONFIGS_RESPONSE: Shape = Shape {
    name: "ListTaskPushNotificationConfigsResponse",
    fields: &[message(1, "configs", &PUSH_CONFIG).list(), text(2, "nextPageToken")],
};
/// `GetExtendedAgentCard`.
pub static EXTENDED_CARD_REQUEST: Shape =
    Shape { name: "GetExtendedAgentCardRequest", fields: &[text(1, "tenant")] };
/// What has no members.
pub static EMPTY: Shape = Shape { name: "google.protobuf.Empty", fields: &[] };

static INTERFACE: Shape = Shape {
    name: "AgentInterface",
    fields: &[
        text(1, "url"),
        text(2, "protocolBinding"),
        text(3, "tenant"),
        text(4, "protocolVersion"),
    ],
};
static PROVIDER: Shape =
    Shape { name: "AgentProvider", fields: &[text(1, "url"), text(2, "organization")] };
static EXTENSION: Shape = Shape {
    name: "AgentExtension",
    fields: &[text(1, "uri"), text(2, "description"), flag(3, "required"), members(4, "params")],
};
static CAPABILITIES: Shape = Shape {
    name: "AgentCapabilities",
    fields: &[
        flag(1, "streaming"),
        flag(2, "pushNotifications"),
        message(3, "extensions", &EXTENSION).list(),
        flag(4, "extendedAgentCard"),
    ],
};
static STRING_LIST: Shape = Shape { name: "StringList", fields: &[text(1, "list").list()] };
static REQUIREMENT: Shape = Shape {
    name: "SecurityRequirement",
    fields: &[field(1, "schemes", Kind::Named(&STRING_LIST))],
};
static SKILL: Shape = Shape {
    name: "AgentSkill",
    fields: &[
        text(1, "id"),
        text(2, "name"),
        text(3, "description"),
        text(4, "tags").list(),
        text(5, "examples").list(),
        text(6, "inputModes").list(),
        text(7, "outputModes").list(),
        message(8, "securityRequirements", &REQUIREMENT).list(),
    ],
};
static SIGNATURE: Shape = Shape {
    name: "AgentCardSignature",
    fields: &[text(1, "protected"), text(2, "signature"), members(3, "header")],
};
static API_KEY_SCHEME: Shape = Shape {
    name: "APIKeySecurityScheme",
    fields: &[text(1, "description"), text(2, "location"), text(3, "name")],
};
static HTTP_SCHEME: Shape = Shape {
    name: "HTTPAuthSecurityScheme",
    fields: &[text(1, "description"), text(2, "scheme"), text(3, "bearerFormat")],
};
static CODE_FLOW: Shape = Shape {
    name: "AuthorizationCodeOAuthFlow",
    fields: &[
        text(1, "authorizationUrl"),
        text(2, "tokenUrl"),
        text(3, "refreshUrl"),
        field(4, "scopes", Kind::Texts),
        flag(5, "pkceRequired"),
    ],
};
static CLIENT_FLOW: Shape = Shape {
    name: "ClientCredentialsOAuthFlow",
    fields: &[text(1, "tokenUrl"), text(2, "refreshUrl"), field(3, "scopes", Kind::Texts)],
};
static IMPLICIT_FLOW: Shape = Shape {
    name: "ImplicitOAuthFlow",
    fields: &[text(1, "authorizationUrl"), text(2, "refreshUrl"), field(3, "scopes", Kind::Texts)],
};
static PASSWORD_FLOW: Shape = Shape {
    name: "PasswordOAuthFlow",
    fields: &[text(1, "tokenUrl"), text(2, "refreshUrl"), field(3, "scopes", Kind::Texts)],
};
static DEVICE_FLOW: Shape = Shape {
    name: "DeviceCodeOAuthFlow",
    fields: &[
        text(1, "deviceAuthorizationUrl"),
        text(2, "tokenUrl"),
        text(3, "refreshUrl"),
        field(4, "scopes", Kind::Texts),
    ],
};
static FLOWS: Shape = Shape {
    name: "OAuthFlows",
    fields: &[
        message(1, "authorizationCode", &CODE_FLOW).one_of(),
        message(2, "clientCredentials", &CLIENT_FLOW).one_of(),
        message(3, "implicit", &IMPLICIT_FLOW).one_of(),
        message(4, "password", &PASSWORD_FLOW).one_of(),
        message(5, "deviceCode", &DEVICE_FLOW).one_of(),
    ],
};
static OAUTH_SCHEME: Shape = Shape {
    name: "OAuth2SecurityScheme",
    fields: &[text(1, "description"), message(2, "flows", &FLOWS), text(3, "oauth2MetadataUrl")],
};
static OPEN_ID_SCHEME: Shape = Shape {
    name: "OpenIdConnectSecurityScheme",
    fields: &[text(1, "description"), text(2, "openIdConnectUrl")],
};
static MUTUAL_TLS_SCHEME: Shape =
    Shape { name: "MutualTlsSecurityScheme", fields: &[text(1, "description")] };
static SCHEME: Shape = Shape {
    name: "SecurityScheme",
    fields: &[
        message(1, "apiKeySecurityScheme", &API_KEY_SCHEME).one_of(),
        message(2, "httpAuthSecurityScheme", &HTTP_SCHEME).one_of(),
        message(3, "oauth2SecurityScheme", &OAUTH_SCHEME).one_of(),
        message(4, "openIdConnectSecurityScheme", &OPEN_ID_SCHEME).one_of(),
        message(5, "mtlsSecurityScheme", &MUTUAL_TLS_SCHEME).one_of(),
    ],
};
/// A card.
pub static AGENT_CARD: Shape = Shape {
    name: "AgentCard",
    fields: &[
        text(1, "name"),
        text(2, "description"),
        message(3, "supportedInterfaces", &INTERFACE).list(),
        message(4, "provider", &PROVIDER),
        text(5, "version"),
        text(6, "documentationUrl"),
        message(7, "capabilities", &CAPABILITIES),
        field(8, "securitySchemes", Kind::Named(&SCHEME)),
        message(9, "securityRequirements", &REQUIREMENT).list(),
        text(10, "defaultInputModes").list(),
        text(11, "defaultOutputModes").list(),
        message(12, "skills", &SKILL).list(),
        message(13, "signatures", &SIGNATURE).list(),
        text(14, "iconUrl"),
    ],
};

static VIOLATION: Shape =
    Shape { name: "FieldViolation", fields: &[text(1, "field"), text(2, "description")] };
/// `google.rpc.BadRequest`.
pub static BAD_REQUEST: Shape = Shape {
    name: "google.rpc.BadRequest",
    fields: &[message(1, "fieldViolations", &VIOLATION).list()],
};
/// `google.rpc.ErrorInfo`.
pub static ERROR_INFO: Shape = Shape {
    name: "google.rpc.ErrorInfo",
    fields: &[text(1, "reason"), text(2, "domain"), field(3, "metadata", Kind::Texts)],
};
static ANY: Shape = Shape {
    name: "google.protobuf.Any",
    fields: &[text(1, "typeUrl"), field(2, "value", Kind::Bytes)],
};
/// `google.rpc.Status`.
pub static STATUS: Shape = Shape {
    name: "google.rpc.Status",
    fields: &[whole(1, "code"), text(2, "message"), message(3, "details", &ANY).list()],
};
