//! Certificates for tests: an authority, servers of several qualities, a client.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use mainstay_pgkit::Options;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, SanType, date_time_ymd};

/// A certificate and its key, as PEM.
pub(super) struct Pem {
    pub(super) certificate: String,
    pub(super) key: String,
}

impl Pem {
    /// A server that shows it.
    pub(super) fn options(&self) -> Options {
        Options::new()
            .setting("ssl", "on")
            .setting("ssl_cert_file", "server.crt")
            .setting("ssl_key_file", "server.key")
            .file("server.crt", self.certificate.as_str())
            .file("server.key", self.key.as_str())
    }
}

/// An authority, and a folder with its certificate and those of a client.
pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(super) certificate: String,
    folder: tempfile::TempDir,
}

impl Authority {
    pub(super) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("params");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "test authority");
        let key = KeyPair::generate().expect("key");
        let certificate = params.self_signed(&key).expect("signed").pem();
        let authority =
            Self { issuer: Issuer::new(params, key), certificate, folder: tempfile::tempdir().expect("folder") };
        authority.write("root.crt", &authority.certificate);
        let client = authority.issue("postgres", &[], Age::Current);
        authority.write("client.crt", &client.certificate);
        authority.write("client.key", &client.key);
        authority
    }

    /// A file of the folder.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("written");
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o600)).expect("mode");
    }

    /// A certificate for these names, or addresses, with a common name.
    pub(super) fn issue(&self, common: &str, names: &[&str], age: Age) -> Pem {
        let key = KeyPair::generate().expect("key");
        let signed = params(common, names, age).signed_by(&key, &self.issuer).expect("signed");
        Pem { certificate: signed.pem(), key: key.serialize_pem() }
    }
}

/// When a certificate is in force.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Age {
    Current,
    Expired,
}

/// A certificate that has signed itself; `authority` as tools make it by default.
pub(super) fn self_signed(common: &str, names: &[&str], authority: bool) -> Pem {
    let key = KeyPair::generate().expect("key");
    let mut params = params(common, names, Age::Current);
    if authority {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    Pem { certificate: params.self_signed(&key).expect("signed").pem(), key: key.serialize_pem() }
}

fn params(common: &str, names: &[&str], age: Age) -> CertificateParams {
    let mut params = CertificateParams::new(Vec::new()).expect("params");
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common);
    params.subject_alt_names = names
        .iter()
        .map(|name| match name.parse() {
            Ok(address) => SanType::IpAddress(address),
            Err(_) => SanType::DnsName((*name).try_into().expect("a name")),
        })
        .collect();
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = if age == Age::Expired { date_time_ymd(2021, 1, 1) } else { date_time_ymd(2090, 1, 1) };
    params
}
