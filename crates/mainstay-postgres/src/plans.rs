//! What the tests of plans share: a database, the statements for it, and the scans of a plan.

use mainstay_env::{Env, block_on};
use mainstay_pgkit::Database;
use mainstay_store::StoreClock;
use serde_json::Value;

use crate::identifier::Schema;
use crate::layout::Layout;
use crate::text::{Rendered, Text, Texts};
use crate::{Config, Postgres};

/// A fresh database with the whole schema; nothing where there is no server.
pub(crate) fn database() -> Option<Database> {
    let database = mainstay_pgkit::server()?.database();
    block_on(async {
        let env = Env::system("plans").expect("a thread");
        drop(Postgres::open(&env, Config::new(database.url()), StoreClock::Server).await.expect("a schema"));
    });
    Some(database)
}

/// The statements for it, as where owners have a token or not.
pub(crate) fn texts(owner: bool, write_split: bool) -> Texts {
    let layout = Layout { number: 125, split: true, owner, consumed_by: true, inline: true };
    Texts::new(Schema::new("schema", "dbos").expect("a name"), layout, write_split)
}

/// The types of a statement's parameters as they stand in PREPARE.
pub(crate) fn types(rendered: &Rendered) -> String {
    rendered.types.iter().map(tokio_postgres::types::Type::name).collect::<Vec<_>>().join(", ")
}

/// A statement by its name. Panics: when there is none.
pub(crate) fn named(all: impl IntoIterator<Item = &'static Text>, name: &str) -> &'static Text {
    all.into_iter().find(|text| text.name == name).unwrap_or_else(|| panic!("no statement {name}"))
}

/// Demands that the cases are those of the statements, each once.
pub(crate) fn assert_all_are_named<'a>(
    cases: impl Iterator<Item = &'a str>,
    declared: impl Iterator<Item = &'static Text>,
) {
    let (mut cases, mut declared): (Vec<&str>, Vec<&str>) = (cases.collect(), declared.map(|text| text.name).collect());
    cases.sort_unstable();
    declared.sort_unstable();
    assert_eq!(cases, declared);
}

/// A node of a plan that scans a table.
pub(crate) struct Scan<'p> {
    pub(crate) node: &'p str,
    pub(crate) table: &'p str,
    index: &'p str,
    /// Whether it seeks by a condition on an index.
    pub(crate) seeks: bool,
    /// Rows read by one loop, those that a filter dropped too.
    pub(crate) rows: f64,
    pub(crate) loops: f64,
}

/// Every scan that `judge` finds fault with, in words. It answers how many rows are too many or read in the wrong way.
pub(crate) fn faults(plan: &Value, judge: &impl Fn(&Scan<'_>) -> Option<f64>) -> Vec<String> {
    let text = |key: &str| plan[key].as_str().unwrap_or_default();
    let number = |key: &str| plan[key].as_f64().unwrap_or_default();
    let scan = Scan {
        node: text("Node Type"),
        table: text("Relation Name"),
        index: text("Index Name"),
        seeks: !text("Index Cond").is_empty(),
        rows: number("Actual Rows") + number("Rows Removed by Filter"),
        loops: number("Actual Loops"),
    };
    let mut found = Vec::new();
    if !scan.table.is_empty()
        && scan.node.ends_with("Scan")
        && let Some(read) = judge(&scan)
    {
        found.push(format!("{} of {} by {:?} read {read} rows", scan.node, scan.table, scan.index));
    }
    for child in plan["Plans"].as_array().into_iter().flatten() {
        found.extend(faults(child, judge));
    }
    found
}

/// A complaint about the blocks that a plan looked at, where they are more than `most`.
pub(crate) fn too_many_blocks(plan: &Value, most: f64) -> Option<String> {
    let blocks = ["Shared Hit Blocks", "Shared Read Blocks"].map(|key| plan[key].as_f64().unwrap_or_default());
    let blocks: f64 = blocks.iter().sum();
    (blocks > most).then(|| format!("{blocks} blocks"))
}
