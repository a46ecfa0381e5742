//! The configuration of a gateway, in two stages: what was written, and what it means.
//!
//! [`Config::load`] reads a `tidegate.toml`, or the `mcpServers` file of any other program, and returns [`Settings`]:
//! every default filled in, every secret resolved, every pattern compiled. Everything that is wrong comes back in one
//! [`ConfigError`], with line and column, and without the values, which may be secrets. A server that refers to a variable
//! or a file that does not exist costs only itself: it is in [`Settings::disabled`].
//!
//! What servers of the program are told is their own business: whoever loads a configuration says which there are
//! ([`Builtins`](tidegate_builtin::Builtins)), and gets what their sections mean.
//!
//! [`edit`] changes a `tidegate.toml` and keeps its comments, [`import`] takes over what other programs have,
//! [`Watcher`] tells when something has changed, and [`schema`] describes the file to editors.

mod admin_settings;
mod audit_settings;
mod auth_settings;
mod config;
mod digest;
mod disabled;
mod document;
mod dotenv;
pub mod edit;
mod endpoint_settings;
mod entry;
mod error;
mod exposure;
pub mod import;
mod limit_settings;
mod listen;
mod log_settings;
mod missing_reference;
mod names;
mod otlp_environment;
mod otlp_settings;
mod permissions;
mod plain_secrets;
mod read_file;
mod resolve;
mod save;
mod schema;
mod secrets;
mod section;
mod serde_message;
mod server_summary;
mod servers_json;
mod settings;
mod source_map;
mod story_settings;
mod structure;
mod telemetry_settings;
#[cfg(test)]
mod test_folder;
mod urls;
mod watch;
mod written;

pub use admin_settings::AdminSettings;
pub use audit_settings::{AuditFile, AuditSettings, SyslogServer, SyslogSettings, WhenFull};
pub use auth_settings::{
    AuthSettings, ClaimSettings, IntrospectionSettings, JwksSource, JwtSettings, ScopeSettings, TlsSettings,
};
pub use config::{Config, Variables};
pub use disabled::{DisabledCause, DisabledServer, missing_note};
pub use endpoint_settings::EndpointSettings;
pub use entry::ServerEntry;
pub use error::{ConfigError, Problem};
pub use exposure::{ExposureError, check_admin_exposure, check_exposure};
pub use limit_settings::{
    Concurrency, LimitRule, LimitScopes, LimitSet, LimitSettings, Rate, RateUnit, RunSettings,
};
pub use listen::{ListenAddress, check_host, check_origin};
pub use log_settings::{LogFile, LogFormat, LogSettings};
pub use names::{check_endpoint as check_endpoint_name, check_scope, check_server as check_server_name};
pub use otlp_settings::OtlpSettings;
pub use resolve::usual_state_dir;
pub use schema::schema;
pub use settings::{
    CallSettings, LONGEST_NAMES, ListenSettings, NameStyle, PinMode, ROOMY_NAMES, SchemaStyle,
    ServerSettings, Settings, Source, ToolMode, ToolOverride, ToolSettings,
};
pub use story_settings::StorySettings;
pub use telemetry_settings::{HealthSettings, TelemetryNames, TelemetrySettings};
pub use tidegate_policy::{PatternError, Patterns};
pub use watch::Watcher;
