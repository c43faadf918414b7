//! The Python files that are part of the binary.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ring::digest::{Context, SHA256};

macro_rules! sources {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../python/", $name)))),*]
    };
}

/// Names below the folder, and texts.
const SOURCES: &[(&str, &str)] = sources![
    "imori_host/__init__.py",
    "imori_host/action.py",
    "imori_host/ending.py",
    "imori_host/expressions.py",
    "imori_host/frames.py",
    "imori_host/output.py",
    "imori_host/paths.py",
    "imori_host/results.py",
    "imori_host/sensor.py",
    "imori_host/sensor_host.py",
    "imori_host/sensor_service.py",
    "imori_host/services.py",
    "imori_host/zygote.py",
    "st2actions/__init__.py",
    "st2actions/runners/__init__.py",
    "st2actions/runners/pythonrunner.py",
    "st2common/__init__.py",
    "st2common/constants/__init__.py",
    "st2common/constants/action.py",
    "st2common/constants/exit_codes.py",
    "st2common/constants/keyvalue.py",
    "st2common/constants/pack.py",
    "st2common/constants/runners.py",
    "st2common/constants/system.py",
    "st2common/exceptions/__init__.py",
    "st2common/exceptions/action.py",
    "st2common/exceptions/content.py",
    "st2common/exceptions/plugins.py",
    "st2common/log.py",
    "st2common/models/__init__.py",
    "st2common/models/api/__init__.py",
    "st2common/models/api/trace.py",
    "st2common/models/utils/__init__.py",
    "st2common/models/utils/action_alias_utils.py",
    "st2common/provided.py",
    "st2common/runners/__init__.py",
    "st2common/runners/base_action.py",
    "st2common/runners/utils.py",
    "st2common/services/__init__.py",
    "st2common/services/datastore.py",
    "st2common/util/__init__.py",
    "st2common/util/compat.py",
    "st2common/util/date.py",
    "st2common/util/isotime.py",
    "st2common/util/jsonify.py",
    "st2common/util/loader.py",
    "st2common/util/monkey_patch.py",
    "st2common/util/shell.py",
    "st2reactor/__init__.py",
    "st2reactor/sensor/__init__.py",
    "st2reactor/sensor/base.py",
    "st2tests/__init__.py",
    "st2tests/action_aliases.py",
    "st2tests/actions.py",
    "st2tests/base.py",
    "st2tests/mocks/__init__.py",
    "st2tests/mocks/action.py",
    "st2tests/mocks/datastore.py",
    "st2tests/mocks/sensor.py",
    "st2tests/pack_resource.py",
    "st2tests/sensors.py",
];

/// Writes the files below a folder, unless they are there, and returns the path that Python imports from. Its name
/// depends on what the files hold, so that a running action never sees those of another version.
///
/// # Errors
/// The folder cannot be written to.
pub fn write_sources(folder: &Path) -> io::Result<PathBuf> {
    let target = folder.join(version());
    if target.is_dir() {
        return Ok(target);
    }
    let temporary = folder.join(format!(".{}.{}", version(), std::process::id()));
    for (name, text) in SOURCES {
        let file = temporary.join(name);
        fs::create_dir_all(file.parent().unwrap_or(&temporary))?;
        fs::write(file, text)?;
    }
    match fs::rename(&temporary, &target) {
        // Another broker was quicker.
        Err(_) if target.is_dir() => fs::remove_dir_all(&temporary)?,
        other => other?,
    }
    Ok(target)
}

fn version() -> String {
    let mut context = Context::new(&SHA256);
    for (name, text) in SOURCES {
        for part in [name, text] {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part.as_bytes());
        }
    }
    context.finish().as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
