//! What each of the three roles may do, and what is said where a right is missing.

use mainstay_postgres::schema_testing::{self as runner, How};
use mainstay_store::{ErrorKind, StoreError};
use tokio_postgres::Client;

use crate::schema::psql::{self, Step};
use crate::schema::support::{Lab, assert_at, rows, text, value, with_database};

/// The file that users run with psql.
const ROLES: &str = include_str!("../../../../../docs/postgres/roles.sql");
/// Every right that `app` and `viewer` have, on a schema named `shop`.
const PRIVILEGES: &str = include_str!("../../../../../docs/postgres/privileges.txt");

/// Names of roles belong to the server, so that each database has its own.
struct Roles {
    migrator: String,
    app: String,
    viewer: String,
}

impl Roles {
    async fn create(lab: &Lab, owner: &Client) -> Self {
        let name = |role: &str| format!("{}_{role}", lab.database.name());
        let roles = Self { migrator: name("migrator"), app: name("app"), viewer: name("viewer") };
        for role in roles.all() {
            owner.batch_execute(&format!("CREATE ROLE {role} LOGIN")).await.expect("a role");
        }
        roles
    }

    fn all(&self) -> [&str; 3] {
        [&self.migrator, &self.app, &self.viewer]
    }

    async fn drop(&self, owner: &Client) {
        for role in self.all() {
            owner.batch_execute(&format!("DROP OWNED BY {role} CASCADE; DROP ROLE {role}")).await.expect("dropped");
        }
    }

    /// Runs the file as psql would.
    async fn grant(&self, owner: &Client, schema: &str) {
        let variables =
            [("schema", schema), ("migrator", &self.migrator), ("app", &self.app), ("viewer", &self.viewer)];
        for step in psql::steps(ROLES, &variables) {
            let made = match step {
                Step::Run(statement) => vec![statement],
                Step::RunAnswers(ask) => rows(owner, &ask).await.into_iter().flatten().flatten().collect(),
            };
            for statement in made {
                owner.batch_execute(&statement).await.unwrap_or_else(|error| panic!("{statement}: {error:?}"));
            }
        }
    }

    /// Grants before the first start, the migrator's start, and the grants on what it has made.
    async fn set_up(&self, lab: &Lab, owner: &Client) {
        self.grant(owner, "shop").await;
        let seen = open(lab, &self.migrator, How::Up).await.expect("the migrator makes the schema");
        assert_eq!(seen, 125);
        self.grant(owner, "shop").await;
    }
}

async fn open(lab: &Lab, role: &str, how: How) -> Result<i64, StoreError> {
    let mut client = lab.client_as(role).await;
    runner::ready(&mut client, "shop", how, &lab.env).await.map(|seen| seen.0)
}

/// Every effective right of a role on what is in both schemas.
async fn rights(owner: &Client, role: &str, called: &str) -> Vec<String> {
    let ask = format!(
        "WITH spaces AS (SELECT oid, nspname FROM pg_namespace WHERE nspname IN ('shop', 'mainstay'))
        SELECT string_agg(what, ', ' ORDER BY n) || ' on ' || thing FROM (
            SELECT 'schema ' || nspname AS thing, p.n, p.what FROM spaces,
                unnest(ARRAY['USAGE', 'CREATE']) WITH ORDINALITY p (what, n) WHERE has_schema_privilege('{role}', oid, what)
            UNION ALL
            SELECT CASE relkind WHEN 'v' THEN 'view ' ELSE 'table ' END || nspname || '.' || relname, p.n, p.what
            FROM spaces JOIN pg_class c ON c.relnamespace = spaces.oid AND c.relkind IN ('r', 'p', 'v', 'S'),
                unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER'])
                WITH ORDINALITY p (what, n) WHERE has_table_privilege('{role}', c.oid, what)
            UNION ALL
            SELECT 'function ' || nspname || '.' || proname, 1, 'EXECUTE' FROM spaces
            JOIN pg_proc p ON p.pronamespace = spaces.oid WHERE has_function_privilege('{role}', p.oid, 'EXECUTE')
            UNION ALL
            SELECT 'database', 1, 'CREATE' WHERE has_database_privilege('{role}', current_database(), 'CREATE')
        ) every GROUP BY thing ORDER BY thing COLLATE \"C\""
    );
    rows(owner, &ask)
        .await
        .into_iter()
        .map(|row| format!("{called}: {}", row[0].as_deref().unwrap_or_default()))
        .collect()
}

#[test]
fn s2_the_roles_have_exactly_the_documented_rights() {
    with_database(|lab| async move {
        let owner = lab.client().await;
        let roles = Roles::create(&lab, &owner).await;
        roles.set_up(&lab, &owner).await;
        let mut found = rights(&owner, &roles.app, "app").await;
        found.extend(rights(&owner, &roles.viewer, "viewer").await);
        let golden: Vec<&str> = PRIVILEGES.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(found, golden);
        let others =
            "SELECT count(*) FROM pg_class WHERE relnamespace IN ('shop'::regnamespace, 'mainstay'::regnamespace)
            AND relowner <> (SELECT oid FROM pg_roles WHERE rolname = '";
        assert_eq!(value(&owner, &format!("{others}{}')", roles.migrator)).await, "0");
        roles.drop(&owner).await;
    });
}

#[test]
fn s2_the_viewer_reads_workflows_and_steps_without_what_users_put_in() {
    with_database(|lab| async move {
        let owner = lab.client().await;
        let roles = Roles::create(&lab, &owner).await;
        roles.set_up(&lab, &owner).await;
        let app = lab.client_as(&roles.app).await;
        let enqueue = "SELECT shop.enqueue_workflow('f', 'q', ARRAY['\"canary\"']::json[], workflow_id => 'w', authenticated_user => 'canary');
            INSERT INTO shop.operation_outputs (workflow_uuid, function_id, function_name, output, error) VALUES ('w', 0, 's', 'canary', 'canary');
            UPDATE shop.workflow_status SET attributes = '{\"a\": \"canary\"}', output = 'canary', error = 'canary', request = 'canary'";
        app.batch_execute(enqueue).await.expect("the app writes");
        let viewer = lab.client_as(&roles.viewer).await;
        let seen = value(&viewer, "SELECT json_agg(w)::text || (SELECT json_agg(s)::text FROM mainstay.steps_shop s) FROM mainstay.workflows_shop w").await;
        assert!(
            seen.contains("\"workflow_uuid\":\"w\"")
                && seen.contains("\"function_name\":\"s\"")
                && !seen.contains("canary"),
            "{seen}"
        );
        let refused = viewer.batch_execute("SELECT FROM shop.workflow_status").await.expect_err("not its table");
        assert_eq!(refused.code().expect("a code").code(), "42501");
        roles.drop(&owner).await;
    });
}

#[test]
fn case_o48_the_app_role_opens_a_schema_that_is_ready_whether_migrations_are_on_or_off() {
    with_database(|lab| async move {
        let owner = lab.client().await;
        let roles = Roles::create(&lab, &owner).await;
        roles.set_up(&lab, &owner).await;
        for how in [How::Up, How::UpTo108, How::Verify] {
            assert_eq!(open(&lab, &roles.app, how).await.expect("opened"), 125);
        }
        let app = lab.client_as(&roles.app).await;
        for what in [
            "CREATE TABLE shop.t ()",
            "CREATE TABLE mainstay.t ()",
            "TRUNCATE shop.streams",
            "DROP TABLE shop.streams",
            "CREATE SCHEMA other",
        ] {
            let refused = app.batch_execute(what).await.expect_err(what);
            assert_eq!(refused.code().expect("a code").code(), "42501", "{what}");
        }
        roles.drop(&owner).await;
    });
}

#[test]
fn case_o48_a_missing_grant_is_named_and_an_older_schema_is_left_as_it_is() {
    with_database(|lab| async move {
        let owner = lab.client().await;
        let roles = Roles::create(&lab, &owner).await;
        roles.set_up(&lab, &owner).await;
        owner
            .batch_execute(&format!(
                "REVOKE DELETE ON shop.streams FROM {0}; REVOKE UPDATE ON mainstay.leases FROM {0}",
                roles.app
            ))
            .await
            .expect("revoked");
        let error = open(&lab, &roles.app, How::Verify).await.expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Denied);
        let lacks = format!("role {} lacks UPDATE on mainstay.leases, DELETE on shop.streams", roles.app);
        assert!(text(&error).contains(&lacks), "{error}");
        owner.batch_execute(&format!("REVOKE USAGE ON SCHEMA shop FROM {}", roles.app)).await.expect("revoked");
        let error = open(&lab, &roles.app, How::Verify).await.expect_err("refused");
        assert!(error.kind() == ErrorKind::Denied && text(&error).contains("shop"), "{error}");
        roles.grant(&owner, "shop").await;
        assert_eq!(open(&lab, &roles.app, How::Verify).await.expect("granted again"), 125);

        owner.batch_execute("UPDATE shop.dbos_migrations SET version = 124").await.expect("set");
        owner.batch_execute("DROP INDEX shop.idx_application_versions_owner_timestamp").await.expect("dropped");
        let error = open(&lab, &roles.app, How::Up).await.expect_err("no owner");
        assert!(error.kind() == ErrorKind::Denied && text(&error).contains("owner"), "{error}");
        assert_eq!(value(&owner, "SELECT version FROM shop.dbos_migrations").await, "124");
        assert_eq!(open(&lab, &roles.migrator, How::Up).await.expect("the owner"), 125);
        assert_at(&owner, "shop", 125, "brought up by its owner").await;
        roles.drop(&owner).await;
    });
}

#[test]
fn s2_views_of_schemas_whose_long_names_begin_alike_are_two() {
    with_database(|lab| async move {
        let owner = lab.client().await;
        let roles = Roles::create(&lab, &owner).await;
        let names = ["a", "b"].map(|end| format!("{}{end}", "x".repeat(62)));
        for name in &names {
            roles.grant(&owner, name).await;
            let mut migrator = lab.client_as(&roles.migrator).await;
            runner::ready(&mut migrator, name, How::Up, &lab.env).await.expect("a schema");
            roles.grant(&owner, name).await;
            let row =
                format!("INSERT INTO {name}.workflow_status (workflow_uuid, status) VALUES ('of {name}', 'SUCCESS')");
            owner.batch_execute(&row).await.expect("a row");
        }
        let viewer = lab.client_as(&roles.viewer).await;
        for name in &names {
            let view = format!("mainstay.workflows_{}", value(&owner, &format!("SELECT md5('{name}')")).await);
            let seen = value(&viewer, &format!("SELECT string_agg(workflow_uuid, ',') FROM {view}")).await;
            assert_eq!(seen, format!("of {name}"));
        }
        roles.drop(&owner).await;
    });
}
