//! Programs of the DBOS SDKs and an engine of ours on one database, both ways.
//!
//! `interop SDKS [--smoke] [FILTER ..]`: `SDKS` is the folder into which `cargo xtask interop` has put the SDKs. Each scenario has
//! a database of its own on a private server.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test program prints what it found, and waits for programs that know real time alone"
)]

mod ours;
mod peer;
mod plan;
mod scenarios;
mod values;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use plan::Scenario;

/// What the command line asks for.
struct Asked {
    sdks: PathBuf,
    smoke: bool,
    filters: Vec<String>,
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("interop: {error}");
            ExitCode::FAILURE
        }
    }
}

fn asked() -> Result<Asked, String> {
    let mut words = std::env::args().skip(1);
    let folder = words.next().ok_or("usage: interop SDKS [--smoke] [FILTER ..]")?;
    let sdks = std::fs::canonicalize(&folder).map_err(|error| format!("{folder}: {error}"))?;
    let mut asked = Asked { sdks, smoke: false, filters: Vec::new() };
    for word in words {
        match word.as_str() {
            "--smoke" => asked.smoke = true,
            flag if flag.starts_with('-') => return Err(format!("`{flag}` is not known")),
            _ => asked.filters.push(word),
        }
    }
    Ok(asked)
}

/// Runs what was asked for, one scenario after the other; whether all went well.
fn run() -> Result<bool, String> {
    let runtime = tokio::runtime::Runtime::new().map_err(|error| format!("no runtime: {error}"))?;
    if let [flag, url, tables] = &std::env::args().skip(1).collect::<Vec<_>>()[..]
        && flag == ours::VICTIM
    {
        let tables = plan::Tables::of(tables).ok_or("no such tables")?;
        return runtime.block_on(ours::be_killed(url, tables)).map(|()| false);
    }
    let asked = asked()?;
    let server = mainstay_pgkit::server().ok_or("there is no PostgreSQL to run on")?;
    let wanted = |scenario: &Scenario| {
        let name = scenario.to_string();
        (!asked.smoke || scenario.is_smoke())
            && (asked.filters.is_empty() || asked.filters.iter().any(|filter| name.contains(filter.as_str())))
    };
    let scenarios: Vec<Scenario> = plan::all().into_iter().filter(wanted).collect();
    if scenarios.is_empty() {
        return Err("no scenario has such a name".to_owned());
    }
    let mut failed = 0;
    for scenario in &scenarios {
        let began = Instant::now();
        let database = server.database();
        let result = runtime.block_on(scenario.run(&asked.sdks, &database.url()));
        let took = began.elapsed().as_secs_f32();
        match result {
            Ok(()) => println!("ok      {scenario} ({took:.1} s)"),
            Err(error) => {
                failed += 1;
                println!("FAILED  {scenario} ({took:.1} s)\n        {}", error.replace('\n', "\n        "));
            }
        }
    }
    println!("interop: {} scenarios, {failed} failed", scenarios.len());
    Ok(failed == 0)
}
