//! Finds the broker's processes by their listening port.

use std::fs;

/// Processes of this machine that listen on a TCP port; other users' processes may be invisible.
pub fn listeners(port: u16) -> Vec<u32> {
    let tables = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];
    let inodes: Vec<u64> = tables
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .flat_map(|table| parse_listening(&table, port))
        .collect();
    if inodes.is_empty() {
        return Vec::new();
    }
    let names: Vec<String> = inodes.iter().map(|inode| format!("socket:[{inode}]")).collect();
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| holds(*pid, &names)).collect()
}

/// Whether a process has one of these files open.
fn holds(pid: u32, names: &[String]) -> bool {
    let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return false;
    };
    files.filter_map(|file| fs::read_link(file.ok()?.path()).ok()).any(|target| {
        let target = target.to_string_lossy();
        names.iter().any(|name| *name == target)
    })
}

/// The inodes of the sockets that listen on a port. Fields of a line: number, local `address:port` in
/// hexadecimal, remote, state (`0A` is listening), queues, timer, retransmissions, user, time-out, inode.
fn parse_listening(table: &str, port: u16) -> Vec<u64> {
    let inode = |line: &str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let (_, local) = fields.get(1)?.rsplit_once(':')?;
        let is_ours = u16::from_str_radix(local, 16).ok()? == port && *fields.get(3)? == "0A";
        if is_ours { fields.get(9)?.parse().ok() } else { None }
    };
    table.lines().skip(1).filter_map(inode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listening_sockets_are_told_from_others() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:F0AD 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0 100\n\
            1: 0100007F:F0AD 0100007F:0016 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0 100\n\
            2: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4713 1 0 100\n\
            3: broken\n";
        for (port, expected) in [(61613, vec![4711]), (22, vec![4713]), (1, vec![])] {
            assert_eq!(parse_listening(table, port), expected, "{port}");
        }
    }

    #[test]
    fn this_process_is_found_by_its_port() {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(listeners(port), [std::process::id()]);
    }
}
