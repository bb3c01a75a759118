//! Every variable of the server, its default, and what is wrong with it. All that is missing is reported at once, and nothing
//! secret can be printed.

use crate::{
    conversation::OPEN_TURNS,
    grant::{GrantKey, MIN_SECRET_BYTES, Ungranted},
};
use contract::topology::Topology;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::{fmt, fmt::Write as _, net::SocketAddr};
use url::Url;

/// A value that must not be printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    #[cfg(test)]
    pub(crate) fn of(value: &str) -> Self {
        Self(value.to_owned())
    }

    /// The value, for the one place that needs it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}

/// The roles that the server connects as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleUrls {
    /// `APP_DATABASE_URL`: tenants' calls. Owns nothing, obeys row-level security.
    pub app: Secret,
    /// `PLATFORM_DATABASE_URL`: platform admins' calls, across schools.
    pub platform: Secret,
    /// `DIRECTORY_DATABASE_URL`: whose e-mail address one is.
    pub directory: Secret,
    /// `DB_POOL`: connections for tenants' calls.
    pub pool: u32,
}

/// What `migrate` and `seed` need.
#[derive(Debug, Clone)]
pub struct OwnerConfig {
    /// `DATABASE_URL`: the owner of the tables.
    pub owner: Secret,
    /// The roles, whose passwords `migrate` sets.
    pub roles: RoleUrls,
}

/// What the broker's side needs.
#[derive(Debug, Clone)]
pub struct BrokerConfig {
    /// `AMQP_URL`.
    pub amqp: Secret,
    /// `CONCURRENCY`: calls that run at once.
    pub concurrency: u16,
    /// `QUEUE_PREFIX`: what the names of this stack begin with, on a broker that it shares.
    pub topology: Topology,
}

/// What `serve`, `call`, `ask` and `authz` need.
#[derive(Debug, Clone)]
pub struct Config {
    /// The database.
    pub roles: RoleUrls,
    /// The broker.
    pub broker: BrokerConfig,
    /// `GRANT_SECRET` and `REQUIRE_GRANT`.
    pub grants: GrantKey,
    /// Whether calls without a grant are refused.
    pub ungranted: Ungranted,
    /// The HTTP door, where there is one.
    pub http: Option<HttpConfig>,
    /// `DAILY_TOKENS`: how many tokens the agents of a school may read and write a day.
    pub daily_tokens: u64,
    /// `OPEN_TURNS`: how many turns of a person in a school may be open at once.
    pub open_turns: u32,
}

/// What the HTTP door needs.
#[derive(Debug, Clone)]
pub struct HttpConfig {
    /// `HTTP_ADDR`: where it listens. Without it there is no such door.
    pub address: SocketAddr,
    /// Whom it lets in.
    pub auth: AuthConfig,
}

/// Whose tokens are taken.
#[derive(Debug, Clone)]
pub struct AuthConfig {
    /// What they must be signed with.
    pub keys: TokenKeys,
    /// `AUTH_ISSUER`: who must have issued them.
    pub issuer: String,
    /// `AUTH_AUDIENCE`: for whom they must be.
    pub audience: String,
}

/// What tokens must be signed with.
#[derive(Debug, Clone)]
pub enum TokenKeys {
    /// `AUTH_SECRET`: a secret that this server shares with whoever issues them (HS256).
    Secret(Secret),
    /// `AUTH_JWKS_URL`: where their issuer publishes its keys (RS256, ES256).
    Published(String),
}

/// How the process logs.
#[derive(Debug, Clone)]
pub struct LogConfig {
    /// `LOG`: a filter.
    pub filter: String,
    /// `LOG_FORMAT=json`: a JSON object a line.
    pub json: bool,
}

/// What is wrong with the environment: everything at once.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("configuration:\n  {}", .0.join("\n  "))]
pub struct ConfigError(pub Vec<String>);

/// What the agents of a school may use a day where nothing is said: about 200 long turns.
const DAILY_TOKENS: u64 = 5_000_000;

/// Bodies and arguments of calls never reach the log through the libraries.
const DEFAULT_FILTER: &str = "info,lapin=error,sqlx=warn";

impl OwnerConfig {
    /// From the environment.
    ///
    /// # Errors
    ///
    /// All that is missing or malformed.
    pub fn from_env() -> Result<Self, ConfigError> {
        Self::from_lookup(&environment)
    }

    /// From whatever answers for a variable's name.
    ///
    /// # Errors
    ///
    /// All that is missing or malformed.
    pub fn from_lookup(lookup: &dyn Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        Self::read(&mut Reader::new(lookup))
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, ConfigError> {
        let owner = reader.url("DATABASE_URL", POSTGRES, None);
        let roles = reader.roles();
        reader.finish()?;
        match (owner, roles) {
            (Some(owner), Some(roles)) => Ok(Self {
                owner: Secret(owner.into()),
                roles,
            }),
            _ => Err(ConfigError(vec!["DATABASE_URL is missing".to_owned()])),
        }
    }
}

impl RoleUrls {
    /// From the environment.
    ///
    /// # Errors
    ///
    /// All that is missing or malformed.
    pub fn from_env() -> Result<Self, ConfigError> {
        let mut reader = Reader::new(&environment);
        let roles = reader.roles();
        reader.finish()?;
        roles.ok_or_else(|| ConfigError(vec!["the database is not configured".to_owned()]))
    }
}

impl Config {
    /// From the environment.
    ///
    /// # Errors
    ///
    /// All that is missing or malformed.
    pub fn from_env() -> Result<Self, ConfigError> {
        Self::from_lookup(&environment)
    }

    /// From whatever answers for a variable's name.
    ///
    /// # Errors
    ///
    /// All that is missing or malformed.
    pub fn from_lookup(lookup: &dyn Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        Self::read(&mut Reader::new(lookup))
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, ConfigError> {
        let roles = reader.roles();
        let amqp = reader.url("AMQP_URL", AMQP, None);
        let concurrency = reader.number("CONCURRENCY", 128, 1, 4096);
        let topology = reader.topology();
        let ungranted = if reader.flag("REQUIRE_GRANT", true) {
            Ungranted::Refuse
        } else {
            Ungranted::Admit
        };
        let grants = reader.grant_key(ungranted);
        let http = reader.http();
        let daily_tokens = reader.number("DAILY_TOKENS", DAILY_TOKENS, 1, u64::MAX / 2);
        let open_turns = reader.number("OPEN_TURNS", OPEN_TURNS, 1, 10_000);
        reader.finish()?;
        match (roles, amqp, grants) {
            (Some(roles), Some(amqp), Some(grants)) => Ok(Self {
                roles,
                broker: BrokerConfig {
                    amqp: Secret(amqp.into()),
                    concurrency,
                    topology,
                },
                grants,
                ungranted,
                http,
                daily_tokens,
                open_turns,
            }),
            _ => Err(ConfigError(vec!["the configuration is incomplete".to_owned()])),
        }
    }
}

impl AuthConfig {
    /// From the environment.
    ///
    /// # Errors
    ///
    /// All that is missing or malformed.
    pub fn from_env() -> Result<Self, ConfigError> {
        let mut reader = Reader::new(&environment);
        let auth = reader.auth();
        reader.finish()?;
        auth.ok_or_else(|| ConfigError(vec!["AUTH_SECRET is missing".to_owned()]))
    }
}

/// `HTTP_URL`: the door that `server chat` goes to.
pub(crate) fn door_url() -> String {
    environment("HTTP_URL").unwrap_or_else(|| "http://127.0.0.1:8080".to_owned())
}

impl LogConfig {
    /// From the environment; a filter that cannot be read falls back to the default, later and with a word.
    #[must_use]
    pub fn from_env() -> Self {
        Self {
            filter: environment("LOG").unwrap_or_else(|| DEFAULT_FILTER.to_owned()),
            json: environment("LOG_FORMAT").is_some_and(|format| format == "json"),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the configuration")]
fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// A name on the broker has at most 255 bytes; this leaves room for ours, and is the worker's bound as well.
const MAX_PREFIX_BYTES: usize = 100;
const POSTGRES: &[&str] = &["postgres", "postgresql"];
const AMQP: &[&str] = &["amqp"];
const HTTP: &[&str] = &["https", "http"];

/// Reads variables and collects what is wrong with them.
struct Reader<'a> {
    lookup: &'a dyn Fn(&str) -> Option<String>,
    problems: Vec<String>,
}

impl<'a> Reader<'a> {
    fn new(lookup: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self {
            lookup,
            problems: Vec::new(),
        }
    }

    fn finish(&mut self) -> Result<(), ConfigError> {
        if self.problems.is_empty() {
            Ok(())
        } else {
            Err(ConfigError(std::mem::take(&mut self.problems)))
        }
    }

    /// A URL of one of these schemes. Its text is never repeated, as it may hold a password.
    fn url(&mut self, name: &str, schemes: &[&str], default: Option<Url>) -> Option<Url> {
        let Some(text) = (self.lookup)(name) else {
            if default.is_none() {
                self.problems.push(format!("{name} is missing"));
            }
            return default;
        };
        match Url::parse(&text) {
            Ok(url) if schemes.contains(&url.scheme()) => Some(url),
            Ok(url) if url.scheme() == "amqps" => {
                self.problems.push(format!(
                    "{name}: amqps:// is not supported; end TLS in a local proxy and use amqp:// to it"
                ));
                None
            }
            Ok(_) => {
                self.problems
                    .push(format!("{name} must be a {}:// URL", schemes.join(":// or ")));
                None
            }
            Err(error) => {
                self.problems.push(format!("{name} is not a URL: {error}"));
                None
            }
        }
    }

    fn number<T: std::str::FromStr + PartialOrd + fmt::Display + Copy>(
        &mut self,
        name: &str,
        default: T,
        least: T,
        most: T,
    ) -> T {
        let Some(text) = (self.lookup)(name) else {
            return default;
        };
        match text.parse() {
            Ok(value) if value >= least && value <= most => value,
            _ => {
                self.problems
                    .push(format!("{name} must be a number from {least} to {most}"));
                default
            }
        }
    }

    fn flag(&mut self, name: &str, default: bool) -> bool {
        match (self.lookup)(name).as_deref() {
            None => default,
            Some("true" | "1") => true,
            Some("false" | "0") => false,
            Some(_) => {
                self.problems.push(format!("{name} must be true or false"));
                default
            }
        }
    }

    fn topology(&mut self) -> Topology {
        let prefix = (self.lookup)("QUEUE_PREFIX").unwrap_or_default();
        if prefix.len() > MAX_PREFIX_BYTES {
            self.problems
                .push(format!("QUEUE_PREFIX must have at most {MAX_PREFIX_BYTES} bytes"));
            return Topology::default();
        }
        Topology::with_prefix(&prefix)
    }

    fn roles(&mut self) -> Option<RoleUrls> {
        let owner = (self.lookup)("DATABASE_URL").and_then(|text| Url::parse(&text).ok());
        let app = self.url(
            "APP_DATABASE_URL",
            POSTGRES,
            owner.as_ref().and_then(|owner| role_url(owner, "school_app")),
        );
        let platform = self.url(
            "PLATFORM_DATABASE_URL",
            POSTGRES,
            owner.as_ref().and_then(|owner| role_url(owner, "school_platform")),
        );
        let directory = self.url(
            "DIRECTORY_DATABASE_URL",
            POSTGRES,
            owner.as_ref().and_then(|owner| role_url(owner, "school_directory")),
        );
        let pool = self.number("DB_POOL", 16, 1, 500);
        Some(RoleUrls {
            app: Secret(app?.into()),
            platform: Secret(platform?.into()),
            directory: Secret(directory?.into()),
            pool,
        })
    }

    fn http(&mut self) -> Option<HttpConfig> {
        let address = (self.lookup)("HTTP_ADDR")?;
        let address = address.parse();
        if address.is_err() {
            self.problems
                .push("HTTP_ADDR must be an address and a port, such as 127.0.0.1:8080".to_owned());
        }
        let auth = self.auth();
        Some(HttpConfig {
            address: address.ok()?,
            auth: auth?,
        })
    }

    fn auth(&mut self) -> Option<AuthConfig> {
        let (secret, url) = ((self.lookup)("AUTH_SECRET"), (self.lookup)("AUTH_JWKS_URL"));
        let keys = match (secret, url) {
            (Some(secret), None) if secret.len() >= MIN_SECRET_BYTES => TokenKeys::Secret(Secret(secret)),
            (Some(_), None) => {
                self.problems
                    .push(format!("AUTH_SECRET must have at least {MIN_SECRET_BYTES} bytes"));
                return None;
            }
            (None, Some(_)) => TokenKeys::Published(self.url("AUTH_JWKS_URL", HTTP, None)?.into()),
            (None, None) => {
                self.problems.push(
                    "AUTH_SECRET or AUTH_JWKS_URL is missing: the HTTP door does not open to unsigned tokens"
                        .to_owned(),
                );
                return None;
            }
            (Some(_), Some(_)) => {
                self.problems
                    .push("AUTH_SECRET and AUTH_JWKS_URL are both set; tokens come from one issuer".to_owned());
                return None;
            }
        };
        let is_local = matches!(keys, TokenKeys::Secret(_));
        Some(AuthConfig {
            keys,
            issuer: self.word("AUTH_ISSUER", is_local.then_some("local"))?,
            audience: self.word("AUTH_AUDIENCE", is_local.then_some("school"))?,
        })
    }

    fn word(&mut self, name: &str, default: Option<&str>) -> Option<String> {
        let word = (self.lookup)(name).or_else(|| default.map(str::to_owned));
        if word.is_none() {
            self.problems.push(format!("{name} is missing"));
        }
        word
    }

    fn grant_key(&mut self, ungranted: Ungranted) -> Option<GrantKey> {
        let Some(secret) = (self.lookup)("GRANT_SECRET") else {
            self.problems.push("GRANT_SECRET is missing".to_owned());
            return None;
        };
        let key = GrantKey::new(secret.as_bytes(), ungranted);
        if key.is_none() {
            self.problems
                .push(format!("GRANT_SECRET must have at least {MIN_SECRET_BYTES} bytes"));
        }
        key
    }
}

/// A role's URL where only the owner's is given: the same database, and a password that follows from the owner's and does not lead
/// back to it.
fn role_url(owner: &Url, role: &str) -> Option<Url> {
    let mut url = owner.clone();
    url.set_username(role).ok()?;
    if let Some(password) = owner.password() {
        url.set_password(Some(&derived_password(password, role)?)).ok()?;
    }
    Some(url)
}

fn derived_password(owner: &str, role: &str) -> Option<String> {
    let mut mac = Hmac::<Sha256>::new_from_slice(owner.as_bytes()).ok()?;
    mac.update(role.as_bytes());
    let mut hex = String::new();
    for byte in mac.finalize().into_bytes() {
        write!(hex, "{byte:02x}").ok()?;
    }
    Some(hex)
}

#[cfg(test)]
mod tests;
