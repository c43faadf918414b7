//! Built-in packs: `core` and others, with the references that packs of StackStorm's use. They are embedded in the
//! program and written to a folder when the engine starts, as scripts run from files.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// The references of the built-in packs.
pub const BUILT_IN_PACKS: [&str; 6] = ["chatops", "core", "default", "imori", "linux", "packs"];

macro_rules! embedded {
    ($($file:literal)*) => {
        [$(($file, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/packs/", $file)))),*]
    };
}

/// The files of the built-in packs, by their paths, and their texts.
pub static BUILT_IN_FILES: [(&str, &str); 102] = embedded! {
    "chatops/actions/format_execution_result.yaml"
    "chatops/actions/match.yaml"
    "chatops/actions/match_and_execute.yaml"
    "chatops/actions/post_message.yaml"
    "chatops/actions/post_result.yaml"
    "chatops/actions/run.yaml"
    "chatops/actions/workflows/post_result.yaml"
    "chatops/actions/workflows/run.yaml"
    "chatops/pack.yaml"
    "chatops/rules/notify_errbot.yaml"
    "chatops/rules/notify_hubot.yaml"
    "core/actions/announcement.yaml"
    "core/actions/ask.yaml"
    "core/actions/echo.yaml"
    "core/actions/error.yaml"
    "core/actions/http.yaml"
    "core/actions/inject_trigger.yaml"
    "core/actions/local.yaml"
    "core/actions/local_sudo.yaml"
    "core/actions/noop.yaml"
    "core/actions/pause.yaml"
    "core/actions/remote.yaml"
    "core/actions/remote_sudo.yaml"
    "core/actions/sendmail.sh"
    "core/actions/sendmail.yaml"
    "core/actions/uuid.yaml"
    "core/actions/winrm_cmd.yaml"
    "core/actions/winrm_ps_cmd.yaml"
    "core/pack.yaml"
    "core/triggers/action_trigger.yaml"
    "core/triggers/cron_timer.yaml"
    "core/triggers/date_timer.yaml"
    "core/triggers/file_written.yaml"
    "core/triggers/inquiry.yaml"
    "core/triggers/interval_timer.yaml"
    "core/triggers/key_value_pair_create.yaml"
    "core/triggers/key_value_pair_delete.yaml"
    "core/triggers/key_value_pair_update.yaml"
    "core/triggers/key_value_pair_value_change.yaml"
    "core/triggers/notify_trigger.yaml"
    "core/triggers/sensor_process_exit.yaml"
    "core/triggers/sensor_process_spawn.yaml"
    "core/triggers/webhook.yaml"
    "default/pack.yaml"
    "imori/actions/call.yaml"
    "imori/actions/key_delete.yaml"
    "imori/actions/key_get.yaml"
    "imori/actions/key_list.yaml"
    "imori/actions/key_set.yaml"
    "imori/actions/publish.yaml"
    "imori/pack.yaml"
    "imori/triggers/queue.yaml"
    "imori/triggers/topic.yaml"
    "linux/actions/check_loadavg.sh"
    "linux/actions/check_loadavg.yaml"
    "linux/actions/check_processes.py"
    "linux/actions/check_processes.yaml"
    "linux/actions/cp.yaml"
    "linux/actions/diag_loadavg.yaml"
    "linux/actions/dig.py"
    "linux/actions/dig.yaml"
    "linux/actions/file_touch.yaml"
    "linux/actions/lsof.yaml"
    "linux/actions/lsof_pids.yaml"
    "linux/actions/mv.yaml"
    "linux/actions/netstat.yaml"
    "linux/actions/netstat_grep.yaml"
    "linux/actions/pkill.yaml"
    "linux/actions/rm.yaml"
    "linux/actions/rsync.yaml"
    "linux/actions/scp.yaml"
    "linux/actions/service.sh"
    "linux/actions/service.yaml"
    "linux/actions/traceroute.sh"
    "linux/actions/traceroute.yaml"
    "linux/actions/vmstat.yaml"
    "linux/actions/wait_for_ssh.py"
    "linux/actions/wait_for_ssh.yaml"
    "linux/actions/workflows/diag_loadavg.yaml"
    "linux/pack.yaml"
    "linux/sensors/file_watch_sensor.py"
    "linux/sensors/file_watch_sensor.yaml"
    "packs/actions/delete.yaml"
    "packs/actions/download.yaml"
    "packs/actions/get.yaml"
    "packs/actions/get_config.yaml"
    "packs/actions/get_pack_dependencies.yaml"
    "packs/actions/get_pack_warnings.yaml"
    "packs/actions/install.yaml"
    "packs/actions/load.yaml"
    "packs/actions/search.yaml"
    "packs/actions/setup_virtualenv.yaml"
    "packs/actions/show.yaml"
    "packs/actions/uninstall.yaml"
    "packs/actions/unload.yaml"
    "packs/actions/update_virtualenv.yaml"
    "packs/aliases/pack_get.yaml"
    "packs/aliases/pack_install.yaml"
    "packs/aliases/pack_search.yaml"
    "packs/aliases/pack_show.yaml"
    "packs/config.schema.yaml"
    "packs/pack.yaml"
};

/// Writes the built-in packs to a folder, whose subfolders then are packs. Files that are there with the same text
/// stay; others are removed.
///
/// # Errors
/// A file cannot be read, written or removed.
pub fn write_built_in_packs(folder: &Path) -> io::Result<()> {
    for (file, text) in &BUILT_IN_FILES {
        let path = folder.join(file);
        if fs::read(&path).is_ok_and(|there| there == text.as_bytes()) {
            continue;
        }
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        // A script may be starting: it reads the old file or the new one, never a part.
        let next = path.with_extension("next");
        fs::write(&next, text)?;
        let mode = if text.starts_with("#!") { 0o755 } else { 0o644 };
        fs::set_permissions(&next, fs::Permissions::from_mode(mode))?;
        fs::rename(&next, &path)?;
    }
    BUILT_IN_PACKS.iter().try_for_each(|pack| remove_others(&folder.join(pack), pack))
}

/// Removes files that an earlier version of the engine wrote.
fn remove_others(folder: &Path, relative: &str) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = format!("{relative}/{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            let prefix = format!("{name}/");
            match BUILT_IN_FILES.iter().any(|(file, _)| file.starts_with(&prefix)) {
                true => remove_others(&entry.path(), &name)?,
                false => fs::remove_dir_all(entry.path())?,
            }
        } else if !BUILT_IN_FILES.iter().any(|(file, _)| *file == name) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
