//! The messages of the official definition: the fields of each, by number, under the names that
//! ProtoJSON gives them. A test holds this table against `proto/a2a.proto`.

use crate::a2a::message::Role;
use crate::a2a::task::TaskState;

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
pub const TASK_STATES: &[&str] = TaskState::WORDS;
/// Who writes messages, each at its number.
pub const ROLES: &[&str] = Role::WORDS;

/// Messages, each with its name in the definition and its fields.
macro_rules! messages {
    ($($(#[$doc:meta])* $vis:vis $name:ident = $defined:literal [$($field:expr),* $(,)?];)+) => {
        $(
            $(#[$doc])*
            $vis static $name: Shape = Shape { name: $defined, fields: &[$($field),*] };
        )+
    };
}

messages! {
    /// A part of a message or an artifact.
    pub PART = "Part" [
        text(1, "text").one_of(),
        field(2, "raw", Kind::Bytes).one_of(),
        text(3, "url").one_of(),
        field(4, "data", Kind::Value).one_of(),
        members(5, "metadata"),
        text(6, "filename"),
        text(7, "mediaType"),
    ];
    /// A message.
    pub MESSAGE = "Message" [
        text(1, "messageId"),
        text(2, "contextId"),
        text(3, "taskId"),
        field(4, "role", Kind::Word(ROLES)),
        message(5, "parts", &PART).list(),
        members(6, "metadata"),
        text(7, "extensions").list(),
        text(8, "referenceTaskIds").list(),
    ];
    /// What a task made.
    pub ARTIFACT = "Artifact" [
        text(1, "artifactId"),
        text(2, "name"),
        text(3, "description"),
        message(4, "parts", &PART).list(),
        members(5, "metadata"),
        text(6, "extensions").list(),
    ];
    /// How a task is.
    pub TASK_STATUS = "TaskStatus" [
        field(1, "state", Kind::Word(TASK_STATES)),
        message(2, "message", &MESSAGE),
        field(3, "timestamp", Kind::Moment),
    ];
    /// A task.
    pub TASK = "Task" [
        text(1, "id"),
        text(2, "contextId"),
        message(3, "status", &TASK_STATUS),
        message(4, "artifacts", &ARTIFACT).list(),
        message(5, "history", &MESSAGE).list(),
        members(6, "metadata"),
    ];
    /// The status of a task changed.
    pub STATUS_UPDATE = "TaskStatusUpdateEvent" [
        text(1, "taskId"),
        text(2, "contextId"),
        message(3, "status", &TASK_STATUS),
        members(4, "metadata"),
    ];
    /// A task made something.
    pub ARTIFACT_UPDATE = "TaskArtifactUpdateEvent" [
        text(1, "taskId"),
        text(2, "contextId"),
        message(3, "artifact", &ARTIFACT),
        flag(4, "append"),
        flag(5, "lastChunk"),
        members(6, "metadata"),
    ];
    /// What a message is answered with.
    pub SEND_MESSAGE_RESPONSE = "SendMessageResponse" [
        message(1, "task", &TASK).one_of(),
        message(2, "message", &MESSAGE).one_of(),
    ];
    /// An event of a stream.
    pub STREAM_RESPONSE = "StreamResponse" [
        message(1, "task", &TASK).one_of(),
        message(2, "message", &MESSAGE).one_of(),
        message(3, "statusUpdate", &STATUS_UPDATE).one_of(),
        message(4, "artifactUpdate", &ARTIFACT_UPDATE).one_of(),
    ];
    /// How a webhook is shown who sends.
    pub AUTHENTICATION_INFO = "AuthenticationInfo" [text(1, "scheme"), text(2, "credentials")];
    /// A webhook.
    pub PUSH_CONFIG = "TaskPushNotificationConfig" [
        text(1, "tenant"),
        text(2, "id"),
        text(3, "taskId"),
        text(4, "url"),
        text(5, "token"),
        message(6, "authentication", &AUTHENTICATION_INFO),
    ];
    /// How a message is to be answered.
    pub SEND_CONFIGURATION = "SendMessageConfiguration" [
        text(1, "acceptedOutputModes").list(),
        message(2, "taskPushNotificationConfig", &PUSH_CONFIG),
        whole(3, "historyLength"),
        flag(4, "returnImmediately"),
    ];
    /// `SendMessage` and `SendStreamingMessage`.
    pub SEND_MESSAGE_REQUEST = "SendMessageRequest" [
        text(1, "tenant"),
        message(2, "message", &MESSAGE),
        message(3, "configuration", &SEND_CONFIGURATION),
        members(4, "metadata"),
    ];
    /// `GetTask`.
    pub GET_TASK_REQUEST = "GetTaskRequest" [
        text(1, "tenant"),
        text(2, "id"),
        whole(3, "historyLength"),
    ];
    /// `ListTasks`.
    pub LIST_TASKS_REQUEST = "ListTasksRequest" [
        text(1, "tenant"),
        text(2, "contextId"),
        field(3, "status", Kind::Word(TASK_STATES)),
        whole(4, "pageSize"),
        text(5, "pageToken"),
        whole(6, "historyLength"),
        field(7, "statusTimestampAfter", Kind::Moment),
        flag(8, "includeArtifacts"),
    ];
    /// The answer to `ListTasks`.
    pub LIST_TASKS_RESPONSE = "ListTasksResponse" [
        message(1, "tasks", &TASK).list(),
        text(2, "nextPageToken"),
        whole(3, "pageSize"),
        whole(4, "totalSize"),
    ];
    /// `CancelTask`.
    pub CANCEL_TASK_REQUEST = "CancelTaskRequest" [
        text(1, "tenant"),
        text(2, "id"),
        members(3, "metadata"),
    ];
    /// `SubscribeToTask`.
    pub SUBSCRIBE_REQUEST = "SubscribeToTaskRequest" [text(1, "tenant"), text(2, "id")];
    /// `GetTaskPushNotificationConfig`.
    pub GET_PUSH_CONFIG_REQUEST = "GetTaskPushNotificationConfigRequest" [
        text(1, "tenant"),
        text(2, "taskId"),
        text(3, "id"),
    ];
    /// `DeleteTaskPushNotificationConfig`.
    pub DELETE_PUSH_CONFIG_REQUEST = "DeleteTaskPushNotificationConfigRequest" [
        text(1, "tenant"),
        text(2, "taskId"),
        text(3, "id"),
    ];
    /// `ListTaskPushNotificationConfigs`.
    pub LIST_PUSH_CONFIGS_REQUEST = "ListTaskPushNotificationConfigsRequest" [
        text(4, "tenant"),
        text(1, "taskId"),
        whole(2, "pageSize"),
        text(3, "pageToken"),
    ];
    /// The answer to it.
    pub LIST_PUSH_CONFIGS_RESPONSE = "ListTaskPushNotificationConfigsResponse" [
        message(1, "configs", &PUSH_CONFIG).list(),
        text(2, "nextPageToken"),
    ];
    /// `GetExtendedAgentCard`.
    pub EXTENDED_CARD_REQUEST = "GetExtendedAgentCardRequest" [text(1, "tenant")];
    /// What has no members.
    pub EMPTY = "google.protobuf.Empty" [];

    INTERFACE = "AgentInterface" [
        text(1, "url"),
        text(2, "protocolBinding"),
        text(3, "tenant"),
        text(4, "protocolVersion"),
    ];
    PROVIDER = "AgentProvider" [text(1, "url"), text(2, "organization")];
    EXTENSION = "AgentExtension" [
        text(1, "uri"),
        text(2, "description"),
        flag(3, "required"),
        members(4, "params"),
    ];
    CAPABILITIES = "AgentCapabilities" [
        flag(1, "streaming"),
        flag(2, "pushNotifications"),
        message(3, "extensions", &EXTENSION).list(),
        flag(4, "extendedAgentCard"),
    ];
    STRING_LIST = "StringList" [text(1, "list").list()];
    REQUIREMENT = "SecurityRequirement" [field(1, "schemes", Kind::Named(&STRING_LIST))];
    SKILL = "AgentSkill" [
        text(1, "id"),
        text(2, "name"),
        text(3, "description"),
        text(4, "tags").list(),
        text(5, "examples").list(),
        text(6, "inputModes").list(),
        text(7, "outputModes").list(),
        message(8, "securityRequirements", &REQUIREMENT).list(),
    ];
    SIGNATURE = "AgentCardSignature" [
        text(1, "protected"),
        text(2, "signature"),
        members(3, "header"),
    ];
    API_KEY_SCHEME = "APIKeySecurityScheme" [
        text(1, "description"),
        text(2, "location"),
        text(3, "name"),
    ];
    HTTP_SCHEME = "HTTPAuthSecurityScheme" [
        text(1, "description"),
        text(2, "scheme"),
        text(3, "bearerFormat"),
    ];
    CODE_FLOW = "AuthorizationCodeOAuthFlow" [
        text(1, "authorizationUrl"),
        text(2, "tokenUrl"),
        text(3, "refreshUrl"),
        field(4, "scopes", Kind::Texts),
        flag(5, "pkceRequired"),
    ];
    CLIENT_FLOW = "ClientCredentialsOAuthFlow" [
        text(1, "tokenUrl"),
        text(2, "refreshUrl"),
        field(3, "scopes", Kind::Texts),
    ];
    IMPLICIT_FLOW = "ImplicitOAuthFlow" [
        text(1, "authorizationUrl"),
        text(2, "refreshUrl"),
        field(3, "scopes", Kind::Texts),
    ];
    PASSWORD_FLOW = "PasswordOAuthFlow" [
        text(1, "tokenUrl"),
        text(2, "refreshUrl"),
        field(3, "scopes", Kind::Texts),
    ];
    DEVICE_FLOW = "DeviceCodeOAuthFlow" [
        text(1, "deviceAuthorizationUrl"),
        text(2, "tokenUrl"),
        text(3, "refreshUrl"),
        field(4, "scopes", Kind::Texts),
    ];
    FLOWS = "OAuthFlows" [
        message(1, "authorizationCode", &CODE_FLOW).one_of(),
        message(2, "clientCredentials", &CLIENT_FLOW).one_of(),
        message(3, "implicit", &IMPLICIT_FLOW).one_of(),
        message(4, "password", &PASSWORD_FLOW).one_of(),
        message(5, "deviceCode", &DEVICE_FLOW).one_of(),
    ];
    OAUTH_SCHEME = "OAuth2SecurityScheme" [
        text(1, "description"),
        message(2, "flows", &FLOWS),
        text(3, "oauth2MetadataUrl"),
    ];
    OPEN_ID_SCHEME = "OpenIdConnectSecurityScheme" [
        text(1, "description"),
        text(2, "openIdConnectUrl"),
    ];
    MUTUAL_TLS_SCHEME = "MutualTlsSecurityScheme" [text(1, "description")];
    SCHEME = "SecurityScheme" [
        message(1, "apiKeySecurityScheme", &API_KEY_SCHEME).one_of(),
        message(2, "httpAuthSecurityScheme", &HTTP_SCHEME).one_of(),
        message(3, "oauth2SecurityScheme", &OAUTH_SCHEME).one_of(),
        message(4, "openIdConnectSecurityScheme", &OPEN_ID_SCHEME).one_of(),
        message(5, "mtlsSecurityScheme", &MUTUAL_TLS_SCHEME).one_of(),
    ];
    /// A card.
    pub AGENT_CARD = "AgentCard" [
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
    ];

    VIOLATION = "FieldViolation" [text(1, "field"), text(2, "description")];
    /// `google.rpc.BadRequest`.
    pub BAD_REQUEST = "google.rpc.BadRequest" [message(1, "fieldViolations", &VIOLATION).list()];
    /// `google.rpc.ErrorInfo`.
    pub ERROR_INFO = "google.rpc.ErrorInfo" [
        text(1, "reason"),
        text(2, "domain"),
        field(3, "metadata", Kind::Texts),
    ];
    ANY = "google.protobuf.Any" [text(1, "typeUrl"), field(2, "value", Kind::Bytes)];
    /// `google.rpc.Status`.
    pub STATUS = "google.rpc.Status" [
        whole(1, "code"),
        text(2, "message"),
        message(3, "details", &ANY).list(),
    ];
}
