//! Embeds the web console as its own build left it: a table of its files, each also compressed if that makes it smaller.
//!
//! A broker that is built before the console has an empty table, and says so to browsers.

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

fn main() -> Result<(), Box<dyn Error>> {
    let built = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../../console/dist");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    // Cargo would run this script at each build if the folder were missing. A read-only tree has to live with that.
    drop(fs::create_dir_all(&built));
    let mut directive = io::stdout();
    writeln!(directive, "cargo:rerun-if-changed={}", built.display())?;
    let mut files = Vec::new();
    if built.is_dir() {
        collect(&built, &mut files)?;
    }
    // The order of a folder differs between machines.
    files.sort();
    let mut table = String::from("&[\n");
    for (number, file) in files.iter().enumerate() {
        let (bytes, path) = (fs::read(file)?, file.strip_prefix(&built)?);
        let path = path.to_str().ok_or_else(|| format!("`{}` is not UTF-8", path.display()))?;
        let plain = out.join(number.to_string());
        fs::write(&plain, &bytes)?;
        write!(table, "    File {{ path: {path:?}, bytes: include_bytes!({plain:?}), gzip: ")?;
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&bytes)?;
        let compressed = encoder.finish()?;
        if compressed.len() < bytes.len() {
            let packed = out.join(format!("{number}.gz"));
            fs::write(&packed, compressed)?;
            writeln!(table, "Some(include_bytes!({packed:?})) }},")?;
        } else {
            writeln!(table, "None }},")?;
        }
    }
    table.push_str("]\n");
    fs::write(out.join("console.rs"), table)?;
    Ok(())
}

/// Adds the files of a folder and of the folders in it.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
