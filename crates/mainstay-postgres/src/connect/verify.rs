//! How far a server's certificate is checked.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

/// Id of the common name in a subject.
const COMMON_NAME: &str = "2.5.4.3";

/// What is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    /// Nothing: the session is encrypted, to whomever.
    Nothing,
    /// That a trusted root has signed it.
    Chain,
    /// That, and that it is for the host that was asked for.
    Full,
}

/// Checks certificates of servers as libpq does with OpenSSL.
#[derive(Debug)]
pub(crate) struct Verifier {
    check: Check,
    trusted: Vec<CertificateDer<'static>>,
    roots: RootCertStore,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    pub(crate) fn new(
        check: Check,
        trusted: Vec<CertificateDer<'static>>,
        algorithms: WebPkiSupportedAlgorithms,
    ) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(trusted.iter().cloned());
        Self { check, trusted, roots, algorithms }
    }

    fn chain(&self, server: &CertificateDer<'_>, others: &[CertificateDer<'_>], now: UnixTime) -> Result<(), Error> {
        // The server's own certificate as the root: common with self-signed ones, which webpki takes for an authority's.
        if self.trusted.iter().any(|root| root.as_ref() == server.as_ref()) {
            return in_force(server, now);
        }
        let parsed = ParsedCertificate::try_from(server)?;
        verify_server_cert_signed_by_trust_anchor(&parsed, &self.roots, others, now, self.algorithms.all)
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.check != Check::Nothing {
            self.chain(end_entity, intermediates, now)?;
        }
        if self.check == Check::Full {
            name(end_entity, server_name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        // Whoever is in between signs with a key of its own: where nobody is trusted, the signature proves nothing.
        match self.check {
            Check::Nothing => Ok(HandshakeSignatureValid::assertion()),
            _ => verify_tls12_signature(message, cert, dss, &self.algorithms),
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match self.check {
            Check::Nothing => Ok(HandshakeSignatureValid::assertion()),
            _ => verify_tls13_signature(message, cert, dss, &self.algorithms),
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

fn parsed(server: &CertificateDer<'_>) -> Result<Certificate, Error> {
    Certificate::from_der(server).map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))
}

fn in_force(server: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
    let validity = parsed(server)?.tbs_certificate.validity;
    if now.as_secs() < validity.not_before.to_unix_duration().as_secs() {
        return Err(Error::InvalidCertificate(CertificateError::NotValidYet));
    }
    if now.as_secs() > validity.not_after.to_unix_duration().as_secs() {
        return Err(Error::InvalidCertificate(CertificateError::Expired));
    }
    Ok(())
}

/// Alternative names decide; the common name only where there are none of the host's kind, as with libpq.
fn name(server: &CertificateDer<'_>, wanted: &ServerName<'_>) -> Result<(), Error> {
    let certificate = parsed(server)?;
    let alternatives = certificate.tbs_certificate.get::<SubjectAltName>();
    let alternatives = alternatives.map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))?;
    let by_address = matches!(wanted, ServerName::IpAddress(_));
    let decides = |name: &GeneralName| match name {
        GeneralName::DnsName(_) => !by_address,
        GeneralName::IpAddress(_) => by_address,
        _ => false,
    };
    if alternatives.is_some_and(|(_, names)| names.0.iter().any(decides)) {
        return verify_server_name(&ParsedCertificate::try_from(server)?, wanted);
    }
    let rdns = certificate.tbs_certificate.subject.0.iter().flat_map(|rdn| rdn.0.iter());
    let mut common = rdns.filter(|part| part.oid.to_string() == COMMON_NAME);
    let fits =
        common.any(|part| std::str::from_utf8(part.value.value()).is_ok_and(|name| matches(name, &wanted.to_str())));
    if fits { Ok(()) } else { Err(Error::InvalidCertificate(CertificateError::NotValidForName)) }
}

/// Whether a name of a certificate, with a `*` as its first label perhaps, is that of a host.
fn matches(pattern: &str, host: &str) -> bool {
    if pattern.eq_ignore_ascii_case(host) {
        return true;
    }
    let rest = pattern.strip_prefix("*.").zip(host.split_once('.'));
    rest.is_some_and(|(pattern, (label, rest))| {
        !label.is_empty() && pattern.contains('.') && pattern.eq_ignore_ascii_case(rest)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_one_label() {
        for (pattern, host, fits) in [
            ("db.example", "DB.example", true),
            ("db.example", "db.example.org", false),
            ("*.example.org", "db.example.org", true),
            ("*.example.org", "a.db.example.org", false),
            ("*.example.org", "example.org", false),
            ("*.org", "example.org", false),
            ("127.0.0.1", "127.0.0.1", true),
        ] {
            assert_eq!(matches(pattern, host), fits, "{pattern} {host}");
        }
    }
}
