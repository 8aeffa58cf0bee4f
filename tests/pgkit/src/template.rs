//! The data directory that `initdb` made once, copied for every server.

use crate::binaries::{Binaries, settle};
use crate::error::{During, Error};
use crate::process::{User, cache_folder, fresh_folder};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Changes when the arguments of `initdb` do, so that no older directory is taken.
const EDITION: u32 = 1;

/// Puts a data directory at `to`, which must not be there.
pub(crate) fn data_directory(binaries: &Binaries, user: User, to: &Path) -> Result<(), Error> {
    let template = cached(binaries, user)?;
    copy(&template, to, user).during(&format!("a copy of {}", template.display()))
}

fn cached(binaries: &Binaries, user: User) -> Result<PathBuf, Error> {
    let name = format!("data-{EDITION}-{}", binaries.version());
    let whole = cache_folder()?.join(name);
    if whole.is_dir() {
        return Ok(whole);
    }
    let folder = fresh_folder(user, false)?;
    let made = initdb(binaries, user, &folder.join("data"));
    let half = whole.with_extension(format!("{}", std::process::id()));
    // The cache is ours, also where initdb ran as nobody, so that nobody can change what later servers run on.
    let kept = made.and_then(|data| copy(&data, &half, User::current().kept()).during("the cache"));
    std::fs::remove_dir_all(&folder).during("initdb's folder")?;
    kept?;
    settle(&half, &whole)?;
    Ok(whole)
}

fn initdb(binaries: &Binaries, user: User, data: &Path) -> Result<PathBuf, Error> {
    let folder = data.parent().unwrap_or(data);
    let mut command = user.command(binaries.program("initdb"), folder);
    command.args(["-U", "postgres", "-A", "trust", "--no-sync", "--encoding=UTF8", "--locale=C", "-D"]).arg(data);
    let output = command.output().during("initdb")?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(Error::new(format!("initdb ended with {}: {}", output.status, text.trim())));
    }
    Ok(data.to_owned())
}

/// Copies folders and plain files, which is all that `initdb` makes.
fn copy(from: &Path, to: &Path, user: User) -> std::io::Result<()> {
    std::fs::create_dir(to)?;
    std::fs::set_permissions(to, std::fs::Permissions::from_mode(0o700))?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target, user)?;
        } else {
            std::fs::copy(entry.path(), &target)?;
            user.give(&target)?;
        }
    }
    user.give(to)
}
