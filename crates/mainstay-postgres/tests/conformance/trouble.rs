//! Trouble made behind the store's back, on the server: it then answers the code that the trouble is named for itself.

use mainstay_conformance::{Lasting, Trouble};
use mainstay_pgkit::Database;
use mainstay_store::ErrorKind;
use mainstay_store::wrap::Method;

/// What [`make`] makes. A claim that meets a lock says so in its reply, and only a deadline times out.
pub(crate) fn can(trouble: Trouble) -> bool {
    match trouble {
        Trouble::Fails(kind, _) => {
            matches!(kind, ErrorKind::Unavailable | ErrorKind::Full | ErrorKind::Contended)
        }
        Trouble::MalformedQueue(_) | Trouble::MalformedWorkflow(_) => true,
        _ => false,
    }
}

pub(crate) fn make(database: &Database, trouble: Trouble) -> Lasting {
    let damage = |sql: String| {
        assert_eq!(database.client().rows(&sql).len(), 1, "what is damaged is there: {sql}");
        Box::new(()) as Lasting
    };
    match trouble {
        Trouble::Fails(ErrorKind::Unavailable, _) => Box::new(Closed::to(database)),
        Trouble::Fails(ErrorKind::Full, method) => Box::new(Refused::by("53100", method, database)),
        Trouble::Fails(ErrorKind::Contended, method) => Box::new(Refused::by("55P03", method, database)),
        Trouble::MalformedQueue(name) => {
            damage(format!("UPDATE dbos.queues SET rate_limit_max = 5 WHERE name = '{name}' RETURNING 1"))
        }
        Trouble::MalformedWorkflow(id) => damage(format!(
            "UPDATE dbos.workflow_status SET authenticated_roles = '?' WHERE workflow_uuid = '{id}' RETURNING 1"
        )),
        other => unreachable!("{other} was not offered"),
    }
}

/// The database takes no connections, and has ended those that it had.
struct Closed(Database);

impl Closed {
    fn to(database: &Database) -> Self {
        let mut client = database.server().client();
        client.run(&format!("ALTER DATABASE {} WITH ALLOW_CONNECTIONS false", database.name()));
        // A session that is told to end does so a moment later, and a call that gets it meanwhile would fail after the trouble.
        while database.terminate_sessions() > 0 {}
        Self(database.clone())
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        self.0.server().client().run(&format!("ALTER DATABASE {} WITH ALLOW_CONNECTIONS true", self.0.name()));
    }
}

/// Every write of a row of any table is answered with a code: at once, or by the COMMIT behind all writes where a method
/// writes several.
struct Refused(Database);

impl Refused {
    fn by(code: &str, method: Method, database: &Database) -> Self {
        let several = [Method::Commit, Method::QueueClaim, Method::LeaseTakeOver, Method::Tick, Method::Collect];
        let when = if several.contains(&method) { "INITIALLY DEFERRED" } else { "INITIALLY IMMEDIATE" };
        database.client().run(&format!(
            "CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = '{code}'; END $$;
             DO $$ DECLARE r record; BEGIN
                 FOR r IN SELECT c.oid::regclass AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                     WHERE n.nspname IN ('dbos', 'mainstay') AND c.relkind = 'r'
                 LOOP
                     EXECUTE format('CREATE CONSTRAINT TRIGGER refuse AFTER INSERT OR UPDATE OR DELETE ON %s
                         DEFERRABLE {when} FOR EACH ROW EXECUTE FUNCTION public.refuse()', r.name);
                 END LOOP;
             END $$"
        ));
        Self(database.clone())
    }
}

impl Drop for Refused {
    fn drop(&mut self) {
        self.0.client().run("DROP FUNCTION public.refuse() CASCADE");
    }
}
