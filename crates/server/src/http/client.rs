//! The server as a client: of its own door for `server chat`, and of whoever issues the tokens.

use reqwest::Client;
use std::time::Duration;

const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// A client to an address. To one without TLS it works on a system that has no certificates, as small containers do.
///
/// # Errors
///
/// When the system has no usable TLS set-up.
pub(crate) fn client(url: &str) -> Result<Client, reqwest::Error> {
    // the client insists on one, whether or not the address has TLS
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        tracing::debug!("another TLS provider was installed before");
    }
    let builder = Client::builder().connect_timeout(CONNECT_LIMIT);
    let builder = if url.starts_with("https:") {
        builder
    } else {
        builder.tls_certs_only([])
    };
    builder.build()
}
