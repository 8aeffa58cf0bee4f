//! The modes of TLS as libpq has them, on rustls.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mainstay_store::FieldError;
use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, SupportedProtocolVersion};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{Error, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::environment::Environment;
use super::given::Given;
use super::settings::{Place, Target};
use super::verify::{Check, Verifier};

/// The protocol that a server from 17 on expects to be named when TLS comes first.
const ALPN: &[u8] = b"postgresql";

/// Stands for a host whose name TLS cannot carry, such as `db-`, where no name is checked. Of an address none is sent.
const NO_NAME: &str = "0.0.0.0";

/// libpq's modes, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mode {
    Disable,
    Allow,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

const MODES: &[(&str, Mode)] = &[
    ("disable", Mode::Disable),
    ("allow", Mode::Allow),
    ("prefer", Mode::Prefer),
    ("require", Mode::Require),
    ("verify-ca", Mode::VerifyCa),
    ("verify-full", Mode::VerifyFull),
];

/// Versions by their places: those from 2 on are spoken.
const VERSIONS: [&str; 4] = ["TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"];

/// TLS of one database.
#[derive(Debug)]
pub(crate) struct Tls {
    pub(crate) mode: Mode,
    pub(crate) direct: bool,
    check: Check,
    config: Option<Arc<ClientConfig>>,
}

impl Tls {
    /// Reads mode, roots and client certificate; files are read once, here.
    pub(crate) fn read(given: &Given, environment: &Environment, targets: &[Target]) -> Result<Self, FieldError> {
        let said = given.word("sslmode", MODES)?;
        let system = given.get("sslrootcert") == Some("system");
        let mode = said.unwrap_or(if system { Mode::VerifyFull } else { Mode::Prefer });
        if system && mode != Mode::VerifyFull {
            return Err(given.wrong("sslmode", "must be verify-full where sslrootcert is system"));
        }
        let direct = given.word("sslnegotiation", &[("postgres", false), ("direct", true)])?.unwrap_or(false);
        if direct && mode < Mode::Require {
            return Err(given.wrong("sslnegotiation", "is direct, which needs an sslmode of require or stronger"));
        }
        if mode == Mode::VerifyFull {
            let nameless = |target: &Target| matches!(&target.place, Place::Tcp(name, _) if !can_be_named(name));
            if targets.iter().any(nameless) {
                let detail = "is not a name or an address that a certificate can be checked for, as verify-full asks";
                return Err(given.wrong("host", detail));
            }
        }
        let mut tls = Self { mode, direct, check: Check::Nothing, config: None };
        if mode != Mode::Disable && targets.iter().any(|target| matches!(target.place, Place::Tcp(..))) {
            let (check, config) = config(given, environment, &tls)?;
            (tls.check, tls.config) = (check, Some(Arc::new(config)));
        }
        Ok(tls)
    }

    /// Whether somebody between could read or change what is sent to such a place.
    pub(crate) fn can_be_listened_to(&self, place: &Place) -> bool {
        place.is_remote() && (self.mode < Mode::Require || self.check == Check::Nothing)
    }

    /// How the first connection to a place is made.
    pub(crate) fn first(&self, place: &Place) -> SslMode {
        match (place, self.mode) {
            (Place::Unix(_), _) | (_, Mode::Disable | Mode::Allow) => SslMode::Disable,
            (_, Mode::Prefer) => SslMode::Prefer,
            _ => SslMode::Require,
        }
    }

    /// How it is made once more after a failure, `encrypted` or not; `None` when that failure stands.
    ///
    /// `allow` goes on with TLS where the server refused a plain session, `prefer` the other way around or where TLS failed.
    pub(crate) fn second(&self, place: &Place, encrypted: bool, error: &Error) -> Option<SslMode> {
        let refused = error.code().is_some_and(|code| code.code().starts_with("28"));
        match (place, self.mode) {
            (Place::Tcp(..), Mode::Allow) if refused => Some(SslMode::Require),
            (Place::Tcp(..), Mode::Prefer) if encrypted && (refused || error.code().is_none()) => {
                Some(SslMode::Disable)
            }
            _ => None,
        }
    }

    /// What makes the sessions of one connection, and the note whether it made one.
    pub(crate) fn connector(&self) -> (Maker, Arc<AtomicBool>) {
        let used = Arc::new(AtomicBool::new(false));
        let config = self.config.as_deref().cloned().unwrap_or_else(nobody);
        (Maker { inner: MakeRustlsConnect::new(config), used: used.clone() }, used)
    }
}

/// Whether TLS can carry the name of a host.
fn can_be_named(host: &str) -> bool {
    ServerName::try_from(host).is_ok()
}

/// A configuration that trusts nobody, for connections that make no TLS session.
fn nobody() -> ClientConfig {
    let (provider, algorithms) = provider();
    let verifier = Verifier::new(Check::Full, Vec::new(), algorithms);
    let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(&[&TLS13, &TLS12]);
    let builder = builder.unwrap_or_else(|_| unreachable!("a provider speaks TLS 1.2 or 1.3")).dangerous();
    builder.with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth()
}

/// The process's own provider where it has chosen one; nothing is installed.
fn provider() -> (Arc<CryptoProvider>, rustls::crypto::WebPkiSupportedAlgorithms) {
    let provider = CryptoProvider::get_default().cloned().unwrap_or_else(|| Arc::new(ring::default_provider()));
    let algorithms = provider.signature_verification_algorithms;
    (provider, algorithms)
}

fn config(given: &Given, environment: &Environment, tls: &Tls) -> Result<(Check, ClientConfig), FieldError> {
    let roots = roots(given, environment, tls.mode)?;
    let check = match (tls.mode, &roots) {
        (Mode::VerifyFull, _) => Check::Full,
        (_, Some(_)) => Check::Chain,
        (_, None) => Check::Nothing,
    };
    let (provider, algorithms) = provider();
    let verifier = Verifier::new(check, roots.unwrap_or_default(), algorithms);
    let versions = versions(given)?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions)
        .map_err(|_| given.wrong("ssl_min_protocol_version", "leaves no version that can be spoken"))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = match client_certificate(given, environment)? {
        Some((chain, key)) => builder.with_client_auth_cert(chain, key).map_err(|_| {
            given.wrong("sslkey", "does not fit the certificate, or is of a kind that is not supported")
        })?,
        None => builder.with_no_client_auth(),
    };
    config.enable_sni = given.number::<i32>("sslsni")?.unwrap_or(1) != 0;
    config.resumption = Resumption::disabled();
    if tls.direct {
        config.alpn_protocols = vec![ALPN.to_vec()];
    }
    Ok((check, config))
}

fn versions(given: &Given) -> Result<Vec<&'static SupportedProtocolVersion>, FieldError> {
    // In any case of letters, and an empty one is none, as with libpq.
    let version = |key: &str, missing| match given.get(key) {
        None => Ok(missing),
        Some(said) => VERSIONS
            .iter()
            .position(|name| name.eq_ignore_ascii_case(said))
            .ok_or_else(|| given.wrong(key, format!("must be one of {}", VERSIONS.join(", ")))),
    };
    let (lowest, highest) = (version("ssl_min_protocol_version", 2)?, version("ssl_max_protocol_version", 3)?);
    if highest < 2 || lowest > highest {
        let key = if highest < 2 { "ssl_max_protocol_version" } else { "ssl_min_protocol_version" };
        return Err(given.wrong(key, "leaves none of TLSv1.2 and TLSv1.3"));
    }
    Ok([(3, &TLS13), (2, &TLS12)].into_iter().filter(|(n, _)| (lowest..=highest).contains(n)).map(|(_, v)| v).collect())
}

/// The certificates to trust; `None` where none are named and the mode does not ask for any.
fn roots(
    given: &Given,
    environment: &Environment,
    mode: Mode,
) -> Result<Option<Vec<CertificateDer<'static>>>, FieldError> {
    let said = given.get("sslrootcert");
    if said == Some("system") {
        let found = rustls_native_certs::load_native_certs().certs;
        let none = given.wrong("sslrootcert", "is system, but the system has no certificates");
        return if found.is_empty() { Err(none) } else { Ok(Some(found)) };
    }
    let Some(path) = said.map(PathBuf::from).or_else(|| default_file(environment, "root.crt")) else {
        let detail = "is not given and ~/.postgresql/root.crt does not exist, so that no certificate can be verified";
        return if mode >= Mode::VerifyCa { Err(given.wrong("sslrootcert", detail)) } else { Ok(None) };
    };
    certificates(&path).map(Some).map_err(|why| given.wrong("sslrootcert", why))
}

/// A file of libpq's folder, when it exists.
fn default_file(environment: &Environment, name: &str) -> Option<PathBuf> {
    environment.home().map(|home| home.join(".postgresql").join(name)).filter(|path| path.exists())
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, &'static str> {
    let read = fs::read(path).map_err(|_| "names a file that cannot be read")?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read).collect();
    found.ok().filter(|found| !found.is_empty()).ok_or("names a file without PEM certificates")
}

type ClientCertificate = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn client_certificate(given: &Given, environment: &Environment) -> Result<Option<ClientCertificate>, FieldError> {
    let wanted = given.word("sslcertmode", &[("disable", false), ("allow", true)])?.unwrap_or(true);
    let said = given.get("sslcert").map(PathBuf::from);
    let Some(path) = said.or_else(|| default_file(environment, "postgresql.crt")).filter(|_| wanted) else {
        return Ok(None);
    };
    let chain = certificates(&path).map_err(|why| given.wrong("sslcert", why))?;
    let said = given.get("sslkey").map(PathBuf::from);
    let Some(path) = said.or_else(|| default_file(environment, "postgresql.key")) else {
        return Err(given.wrong("sslkey", "is not given for the client certificate"));
    };
    let wrong = |why: &str| given.wrong("sslkey", why);
    let metadata = fs::metadata(&path).map_err(|_| wrong("names a file that cannot be read"))?;
    if is_open_to_others(&metadata) {
        return Err(wrong("names a file that others have access to: 0600 or less, or 0640 when it is root's"));
    }
    let read = zeroize::Zeroizing::new(fs::read(&path).map_err(|_| wrong("names a file that cannot be read"))?);
    let key = PrivateKeyDer::from_pem_slice(&read);
    Ok(Some((chain, key.map_err(|_| wrong("names a file without a PEM private key that is not encrypted"))?)))
}

#[cfg(unix)]
fn is_open_to_others(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    metadata.mode() & if metadata.uid() == 0 { 0o037 } else { 0o077 } != 0
}

#[cfg(not(unix))]
fn is_open_to_others(_metadata: &fs::Metadata) -> bool {
    false
}

/// Makes TLS sessions by rustls, and notes that it was asked for one.
#[derive(Clone)]
pub(crate) struct Maker {
    inner: MakeRustlsConnect,
    used: Arc<AtomicBool>,
}

impl MakeTlsConnect<Socket> for Maker {
    type Stream = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;
    type TlsConnect = Session<<MakeRustlsConnect as MakeTlsConnect<Socket>>::TlsConnect>;
    type Error = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Error;

    fn make_tls_connect(&mut self, host: &str) -> Result<Self::TlsConnect, Self::Error> {
        // A name that is to be checked was seen to before: without this, one would be taken for a failure of TLS.
        let host = if can_be_named(host) { host } else { NO_NAME };
        let inner = <MakeRustlsConnect as MakeTlsConnect<Socket>>::make_tls_connect(&mut self.inner, host)?;
        Ok(Session { inner, used: self.used.clone() })
    }
}

/// One TLS session to be made.
pub(crate) struct Session<T> {
    inner: T,
    used: Arc<AtomicBool>,
}

impl<S: AsyncRead + AsyncWrite + Unpin, T: TlsConnect<S>> TlsConnect<S> for Session<T> {
    type Stream = T::Stream;
    type Error = T::Error;
    type Future = T::Future;

    fn connect(self, stream: S) -> Self::Future {
        self.used.store(true, Ordering::Relaxed);
        self.inner.connect(stream)
    }
}
