//! The keys of libpq: the variable that sets each, and whether it is read, ignored or refused here.

use Support::{Ignored, Read, Refused};

/// What becomes of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Support {
    /// It has its meaning.
    Read,
    /// It asks for nothing that could be done here, as in a libpq without GSSAPI.
    Ignored,
    /// It asks for what is not there; the text says what to do.
    Refused(&'static str),
}

/// A key of libpq.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    /// Its variable; empty where libpq has none.
    pub(crate) variable: &'static str,
    pub(crate) support: Support,
}

const fn key(name: &'static str, variable: &'static str, support: Support) -> Key {
    Key { name, variable, support }
}

const NO_LISTS: &str = "is not supported: revocation lists are not read";
const NO_SCRAM_KEYS: &str = "is not supported: give the password itself";
const NO_OAUTH: &str = "is not supported: OAuth is not offered";

/// All keys of libpq 18.
pub(crate) const KEYS: &[Key] = &[
    key("host", "PGHOST", Read),
    key("hostaddr", "PGHOSTADDR", Read),
    key("port", "PGPORT", Read),
    key("dbname", "PGDATABASE", Read),
    key("user", "PGUSER", Read),
    key("password", "PGPASSWORD", Read),
    key("passfile", "PGPASSFILE", Read),
    key("options", "PGOPTIONS", Read),
    key("application_name", "PGAPPNAME", Read),
    key("fallback_application_name", "", Read),
    key("client_encoding", "PGCLIENTENCODING", Read),
    key("connect_timeout", "PGCONNECT_TIMEOUT", Read),
    key("keepalives", "", Read),
    key("keepalives_idle", "", Read),
    key("keepalives_interval", "", Read),
    key("keepalives_count", "", Read),
    key("tcp_user_timeout", "", Read),
    key("target_session_attrs", "PGTARGETSESSIONATTRS", Read),
    key("load_balance_hosts", "PGLOADBALANCEHOSTS", Read),
    key("channel_binding", "PGCHANNELBINDING", Read),
    key("sslmode", "PGSSLMODE", Read),
    key("sslnegotiation", "PGSSLNEGOTIATION", Read),
    key("sslrootcert", "PGSSLROOTCERT", Read),
    key("sslcert", "PGSSLCERT", Read),
    key("sslkey", "PGSSLKEY", Read),
    key("sslsni", "PGSSLSNI", Read),
    key("sslcertmode", "PGSSLCERTMODE", Read),
    key("ssl_min_protocol_version", "PGSSLMINPROTOCOLVERSION", Read),
    key("ssl_max_protocol_version", "PGSSLMAXPROTOCOLVERSION", Read),
    key("gssencmode", "PGGSSENCMODE", Read),
    key("sslcompression", "PGSSLCOMPRESSION", Ignored),
    key("krbsrvname", "PGKRBSRVNAME", Ignored),
    key("gsslib", "PGGSSLIB", Ignored),
    key("gssdelegation", "PGGSSDELEGATION", Ignored),
    key("sslpassword", "", Refused("is not supported: give a private key that is not encrypted")),
    key("sslcrl", "PGSSLCRL", Refused(NO_LISTS)),
    key("sslcrldir", "PGSSLCRLDIR", Refused(NO_LISTS)),
    key("sslkeylogfile", "", Refused("is not supported: keys of a connection are not written")),
    key("requirepeer", "PGREQUIREPEER", Refused("is not supported: the owner of a socket is not asked")),
    key("require_auth", "PGREQUIREAUTH", Refused("is not supported: the server chooses how it asks for a password")),
    key("service", "PGSERVICE", Refused("is not supported: write what the service file says")),
    key("servicefile", "PGSERVICEFILE", Refused("is not supported: write what the service file says")),
    key("replication", "", Refused("is not supported: a store is no replica")),
    key("min_protocol_version", "PGMINPROTOCOLVERSION", Refused("is not supported: protocol 3.0 is spoken")),
    key("max_protocol_version", "PGMAXPROTOCOLVERSION", Refused("is not supported: protocol 3.0 is spoken")),
    key("scram_client_key", "", Refused(NO_SCRAM_KEYS)),
    key("scram_server_key", "", Refused(NO_SCRAM_KEYS)),
    key("oauth_issuer", "", Refused(NO_OAUTH)),
    key("oauth_client_id", "", Refused(NO_OAUTH)),
    key("oauth_client_secret", "", Refused(NO_OAUTH)),
    key("oauth_scope", "", Refused(NO_OAUTH)),
];

/// The key of that name.
pub(crate) fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_key_and_no_variable_stands_twice() {
        let names: BTreeSet<_> = KEYS.iter().map(|key| key.name).collect();
        assert_eq!(names.len(), KEYS.len());
        let named: Vec<_> = KEYS.iter().map(|key| key.variable).filter(|variable| !variable.is_empty()).collect();
        assert_eq!(named.iter().collect::<BTreeSet<_>>().len(), named.len());
    }
}
