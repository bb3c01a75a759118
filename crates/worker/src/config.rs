//! The worker's configuration: every variable, its default, and what is wrong with any of them, reported at once.

use crate::rpc::check_address;
use contract::topology::Topology;
use std::{collections::BTreeMap, fmt, str::FromStr};

/// The endpoint where none is named.
const DEFAULT_BASE_URL: &str = "https://api.openai.com/v1";
/// What is logged where nothing is said.
const DEFAULT_LOG: &str = "info,lapin=error,async_openai=off";
/// How many turns are run at once where nothing is said: each mostly waits for the model.
const DEFAULT_TURN_CONCURRENCY: u16 = 8;
/// The most turns that a worker runs at once; each may hold a few calls, of which the service bounds the sum.
const MAX_TURN_CONCURRENCY: u16 = 256;
/// What is said about any other number.
const NO_CONCURRENCY: &str = "is not a number from 1 to 256";
/// The longest prefix: a name on the broker has room for 255 bytes.
const MAX_PREFIX_BYTES: usize = 100;

/// All that a worker is told.
#[derive(Debug, Clone)]
pub struct Config {
    /// `AMQP_URL`: the broker.
    pub amqp_url: BrokerUrl,
    /// `QUEUE_PREFIX`: what the names of this stack begin with, on a broker that it shares.
    pub topology: Topology,
    /// The model.
    pub model: ModelConfig,
    /// `TURN_CONCURRENCY`: how many turns are run at once.
    pub turn_concurrency: u16,
    /// The log.
    pub log: LogConfig,
}

/// Where the model is.
#[derive(Debug, Clone)]
pub struct ModelConfig {
    /// `OPENAI_BASE_URL`: the endpoint, up to and without `/chat/completions`.
    pub base_url: String,
    /// `OPENAI_API_KEY`: may be left out where the endpoint is named and asks for none.
    pub api_key: Secret,
    /// `MODEL`: the model's name at the endpoint.
    pub name: String,
}

/// What is logged and how.
#[derive(Debug, Clone)]
pub struct LogConfig {
    /// `LOG`: a filter such as `info,worker=debug`.
    pub filter: String,
    /// `LOG_FORMAT`: `text` or `json`.
    pub format: LogFormat,
}

/// How a line of the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// For machines.
    Json,
}

impl FromStr for LogFormat {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err(()),
        }
    }
}

/// A text that is never shown.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Hides a text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for whoever sends it where it belongs.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

/// The broker's address, shown without its password.
#[derive(Clone)]
pub struct BrokerUrl(String);

impl BrokerUrl {
    /// An address; it is checked where it is used.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self(url.into())
    }

    /// The address, password included.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for BrokerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.0.rsplit_once('@').map_or(self.0.as_str(), |(_, host)| host);
        write!(f, "amqp://…@{}", host.trim_start_matches("amqp://"))
    }
}

/// All that is wrong with the configuration.
#[derive(Debug, thiserror::Error)]
pub struct ConfigError {
    /// By variable.
    problems: BTreeMap<&'static str, String>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the environment is not complete:")?;
        self.problems
            .iter()
            .try_for_each(|(variable, problem)| write!(f, "\n  {variable} {problem}"))
    }
}

impl Config {
    /// Reads the process's environment.
    ///
    /// # Errors
    ///
    /// Everything that is missing or wrong, at once.
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place where the worker reads its environment"
    )]
    pub fn from_env() -> Result<Self, ConfigError> {
        Self::from_lookup(|variable| std::env::var(variable).ok())
    }

    /// Reads an environment. An empty variable is as one that is not set.
    ///
    /// # Errors
    ///
    /// Everything that is missing or wrong, at once.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let mut reader = Reader {
            lookup,
            problems: BTreeMap::new(),
        };
        let base_url = reader.get("OPENAI_BASE_URL");
        let api_key = match (&base_url, reader.get("OPENAI_API_KEY")) {
            (_, Some(key)) => key,
            (Some(_), None) => "none".to_owned(),
            (None, None) => reader.missing("OPENAI_API_KEY", "the key of the model's endpoint"),
        };
        reader.check(
            "OPENAI_API_KEY",
            api_key.bytes().all(|byte| byte.is_ascii_graphic()),
            "has a character that no key has",
        );
        let base_url = base_url.unwrap_or_else(|| DEFAULT_BASE_URL.to_owned());
        let is_http = base_url.starts_with("http://") || base_url.starts_with("https://");
        reader.check("OPENAI_BASE_URL", is_http, "is not an http:// or https:// address");
        let amqp_url = reader.required("AMQP_URL", "the broker, such as amqp://guest:guest@127.0.0.1:5672");
        if !amqp_url.is_empty()
            && let Err(error) = check_address(&amqp_url)
        {
            reader.problems.insert("AMQP_URL", error.to_string());
        }
        let name = reader.required("MODEL", "the model's name at its endpoint");
        let turn_concurrency = reader.parsed("TURN_CONCURRENCY", DEFAULT_TURN_CONCURRENCY, NO_CONCURRENCY);
        let in_bounds = (1..=MAX_TURN_CONCURRENCY).contains(&turn_concurrency);
        reader.check("TURN_CONCURRENCY", in_bounds, NO_CONCURRENCY);
        let prefix = reader.get("QUEUE_PREFIX").unwrap_or_default();
        reader.check(
            "QUEUE_PREFIX",
            prefix.len() <= MAX_PREFIX_BYTES,
            "is longer than 100 bytes",
        );
        let topology = Topology::with_prefix(&prefix);
        let filter = reader.get("LOG").unwrap_or_else(|| DEFAULT_LOG.to_owned());
        let format = reader.parsed("LOG_FORMAT", LogFormat::Text, "is neither `text` nor `json`");
        if !reader.problems.is_empty() {
            return Err(ConfigError {
                problems: reader.problems,
            });
        }
        let base_url = base_url.trim_end_matches('/').to_owned();
        Ok(Self {
            amqp_url: BrokerUrl(amqp_url),
            topology,
            model: ModelConfig {
                base_url,
                api_key: Secret(api_key),
                name,
            },
            turn_concurrency,
            log: LogConfig { filter, format },
        })
    }
}

/// Reads variables and collects what is wrong with them.
struct Reader<L> {
    lookup: L,
    problems: BTreeMap<&'static str, String>,
}

impl<L: Fn(&str) -> Option<String>> Reader<L> {
    fn get(&self, variable: &str) -> Option<String> {
        (self.lookup)(variable).filter(|value| !value.is_empty())
    }

    fn missing(&mut self, variable: &'static str, what: &str) -> String {
        self.problems.insert(variable, format!("is not set: {what}"));
        String::new()
    }

    fn required(&mut self, variable: &'static str, what: &str) -> String {
        self.get(variable).unwrap_or_else(|| self.missing(variable, what))
    }

    fn check(&mut self, variable: &'static str, holds: bool, problem: &str) {
        if !holds {
            self.problems.insert(variable, problem.to_owned());
        }
    }

    fn parsed<T: FromStr>(&mut self, variable: &'static str, default: T, problem: &str) -> T {
        let Some(value) = self.get(variable) else {
            return default;
        };
        value.parse().unwrap_or_else(|_| {
            self.problems.insert(variable, problem.to_owned());
            default
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
        Config::from_lookup(|name| {
            variables
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn all_that_is_missing_is_reported_at_once() {
        let text = read(&[("TURN_CONCURRENCY", "0"), ("LOG_FORMAT", "xml")])
            .unwrap_err()
            .to_string();
        for variable in ["AMQP_URL", "MODEL", "OPENAI_API_KEY", "TURN_CONCURRENCY", "LOG_FORMAT"] {
            assert!(text.contains(variable), "{variable} in {text}");
        }
    }

    #[test]
    fn secrets_are_never_shown() {
        let config = read(&[
            ("AMQP_URL", "amqp://someone:hunter2@broker:5672/school"),
            ("OPENAI_API_KEY", "sk-hunter3"),
            ("MODEL", "m"),
        ])
        .unwrap();
        let text = format!("{config:?}");
        assert!(
            text.contains("broker:5672/school") && !text.contains("hunter"),
            "{text}"
        );
        assert_eq!(config.turn_concurrency, DEFAULT_TURN_CONCURRENCY);
    }

    #[test]
    fn an_encrypted_broker_is_refused_clearly() {
        let text = read(&[("AMQP_URL", "amqps://h"), ("OPENAI_API_KEY", "k"), ("MODEL", "m")])
            .unwrap_err()
            .to_string();
        assert!(text.contains("amqps") && !text.contains("MODEL"), "{text}");
    }

    #[test]
    fn an_endpoint_of_ones_own_needs_no_key() {
        let url = ("OPENAI_BASE_URL", "http://127.0.0.1:1/v1/");
        let config = read(&[("AMQP_URL", "amqp://h"), url, ("MODEL", "m"), ("OPENAI_API_KEY", "")]).unwrap();
        assert_eq!(config.model.base_url, "http://127.0.0.1:1/v1");
    }
}
