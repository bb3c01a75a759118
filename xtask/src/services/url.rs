//! The little that has to be known of a URL: who it leads to, and how to name another database.

use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use super::ServiceError;

/// A server that is there answers at once, even from another host.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// The URL with another database in its path; the rest, options too, as it was.
pub(crate) fn with_database(url: &str, database: &str) -> String {
    let (base, options) = url
        .split_once('?')
        .map_or((url, None), |(base, options)| (base, Some(options)));
    let authority = base.find("://").map_or(0, |at| at + 3);
    let server = base
        .get(authority..)
        .and_then(|rest| rest.find('/'))
        .and_then(|at| base.get(..authority + at));
    let options = options.map(|options| format!("?{options}")).unwrap_or_default();
    format!("{}/{database}{options}", server.unwrap_or(base))
}

/// Connects once to the server that a variable names, so that a dead one is told by that variable's name. Returns its
/// address.
pub(crate) fn require_answer(variable: &'static str, url: &str, port: u16) -> Result<String, ServiceError> {
    let Some(address) = address_of(url, port) else {
        return Ok("a local socket".to_owned());
    };
    let connected = address.to_socket_addrs().and_then(|candidates| {
        let mut last = std::io::Error::from(std::io::ErrorKind::AddrNotAvailable);
        for candidate in candidates {
            match TcpStream::connect_timeout(&candidate, ANSWER_LIMIT) {
                Ok(_) => return Ok(()),
                Err(error) => last = error,
            }
        }
        Err(last)
    });
    match connected {
        Ok(()) => Ok(address),
        Err(source) => Err(ServiceError::NoAnswer {
            variable,
            address,
            source,
        }),
    }
}

/// `host:port`, or nothing where the URL names no host (PostgreSQL's local socket).
fn address_of(url: &str, default_port: u16) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?']).next()?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let has_port = host
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    match host {
        "" => None,
        host if has_port => Some(host.to_owned()),
        host => Some(format!("{host}:{default_port}")),
    }
}

#[cfg(test)]
mod tests {
    use super::{address_of, with_database};

    #[test]
    fn another_database_keeps_the_rest() {
        let named = |url| with_database(url, "x");
        assert_eq!(named("postgres://u:p@h:1/db"), "postgres://u:p@h:1/x");
        assert_eq!(named("postgres://u@h"), "postgres://u@h/x");
        assert_eq!(
            named("postgres://u@h/db?sslmode=disable"),
            "postgres://u@h/x?sslmode=disable"
        );
        assert_eq!(named("postgres:///db?host=/run/pg"), "postgres:///x?host=/run/pg");
    }

    #[test]
    fn address_is_host_and_port() {
        assert_eq!(
            address_of("amqp://u:p@broker/%2f", 5672).as_deref(),
            Some("broker:5672")
        );
        assert_eq!(address_of("amqp://u:p:@h:1/%2f", 5672).as_deref(), Some("h:1"));
        assert_eq!(
            address_of("postgres://[::1]:5433/db", 5432).as_deref(),
            Some("[::1]:5433")
        );
        assert_eq!(address_of("postgres:///db?host=/run/pg", 5432), None);
    }
}
