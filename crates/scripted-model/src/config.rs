//! The demo model's configuration: every variable and its default.

use std::net::SocketAddr;

/// Where it listens where nothing is said: a free port, on this machine only.
const DEFAULT_ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);
/// What is logged where nothing is said.
const DEFAULT_LOG: &str = "info";

/// All that it is told.
pub(crate) struct Config {
    /// `SCRIPTED_MODEL_ADDR`.
    pub(crate) address: SocketAddr,
    /// `LOG`.
    pub(crate) log: String,
    /// `LOG_FORMAT` is `json`.
    pub(crate) log_json: bool,
}

impl Config {
    /// Reads the process's environment.
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place where the demo model reads its environment"
    )]
    pub(crate) fn from_env() -> anyhow::Result<Self> {
        Self::from_lookup(|variable| std::env::var(variable).ok())
    }

    fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> anyhow::Result<Self> {
        let get = |variable| lookup(variable).filter(|value| !value.is_empty());
        let address = match get("SCRIPTED_MODEL_ADDR") {
            None => DEFAULT_ADDRESS,
            Some(text) => text
                .parse()
                .map_err(|_| anyhow::anyhow!("SCRIPTED_MODEL_ADDR is not an address such as 127.0.0.1:8077"))?,
        };
        let log = get("LOG").unwrap_or_else(|| DEFAULT_LOG.to_owned());
        Ok(Self {
            address,
            log,
            log_json: get("LOG_FORMAT").as_deref() == Some("json"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_checked() {
        assert_eq!(Config::from_lookup(|_| None).unwrap().address, DEFAULT_ADDRESS);
        let address =
            |text: &'static str| Config::from_lookup(move |name| (name == "SCRIPTED_MODEL_ADDR").then(|| text.into()));
        assert_eq!(address("0.0.0.0:8077").unwrap().address.port(), 8077);
        assert!(address("here").is_err());
    }
}
