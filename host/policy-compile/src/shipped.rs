//! Native code shipped in a directory of the image, so that the first driver on a node compiles nothing. The same
//! program made it, for every processor of its architecture; its files are named and checked like those of the cache.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::cache::{ENDING, digest_in};
use crate::files::sealed::Sealed;
use crate::limits::NATIVE_BYTES;
use crate::native::Native;

/// Group and others must not write.
const OTHERS_MAY_WRITE: u32 = 0o022;

/// The native code for a key, if it exists and is as trustworthy as the program itself: the owner of the program's file
/// also owns directory and file, and only this owner may write to them. Blocks.
pub fn fetch_shipped(dir: &Path, key: &str) -> io::Result<Option<Native>> {
    let owner = fs::metadata("/proc/self/exe")?.uid();
    let is_trusted = |meta: &fs::Metadata| meta.uid() == owner && meta.mode() & OTHERS_MAY_WRITE == 0;
    if !is_trusted(&fs::symlink_metadata(dir)?) {
        return Err(io::Error::other(
            "others than the program's owner may write to it",
        ));
    }
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name();
        let Some(digest) = name.to_str().and_then(|name| digest_in(name, key)) else {
            continue;
        };
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(dir.join(&name))?;
        let meta = file.metadata()?;
        if meta.is_file() && is_trusted(&meta) {
            let code = Sealed::copy("native", file, NATIVE_BYTES)?;
            return Ok(code.and_then(|code| Native::kept(code, digest)));
        }
    }
    Ok(None)
}

/// Writes native code for a key, readable by all users. Blocks.
pub fn write_shipped(dir: &Path, key: &str, native: &Native) -> io::Result<PathBuf> {
    fs::create_dir_all(dir)?;
    let code = native.code();
    let path = dir.join(format!("{key}-{}{ENDING}", code.digest()));
    let part = path.with_extension("part");
    let mut file = File::create(&part)?;
    io::copy(&mut code.reader(), &mut file)?;
    file.set_permissions(fs::Permissions::from_mode(0o444))?;
    file.sync_all()?;
    fs::rename(&part, &path)?;
    Ok(path)
}
