//! `imori cert`: certificates for trying out TLS.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::net::IpAddr;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};

use crate::output::print_line;

/// The names of this host that every certificate of a broker includes.
const LOCAL_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Make certificates for trying out TLS.
#[derive(Debug, Args)]
pub(crate) struct Cert {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a CA of your own, a certificate of this broker and one of a client, and print the lines of the
    /// configuration that use them.
    ///
    /// The CA is for development: anyone with its key can impersonate this broker to clients that trust it.
    Dev(Dev),
}

#[derive(Debug, Args)]
struct Dev {
    /// Names and addresses of the broker, besides `localhost`, `127.0.0.1` and `::1`.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// The folder to create for the certificates.
    #[arg(long, value_name = "DIR", default_value = "certs")]
    dir: PathBuf,
    /// The user that the client's certificate names.
    #[arg(long, value_name = "USER", default_value = "guest")]
    user: String,
    /// Days for which the certificates are valid.
    #[arg(long, value_name = "DAYS", default_value_t = 90, value_parser = clap::value_parser!(u16).range(1..=825))]
    days: u16,
}

impl Cert {
    pub(super) fn run(self) -> anyhow::Result<()> {
        match self.command {
            Command::Dev(dev) => dev.run(),
        }
    }
}

impl Dev {
    fn run(self) -> anyhow::Result<()> {
        // Checked before anything is written, so that a refused name leaves no folder behind.
        if let Some(name) = self.names.iter().find(|name| !is_name(name)) {
            bail!("`{name}` is neither a host name nor an address; write it without scheme and port");
        }
        let dir = &self.dir;
        if dir.exists() {
            bail!("`{}` is there already; remove it, or name another folder with `--dir`", dir.display());
        }
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
        made.with_context(|| format!("`{}` cannot be made", dir.display()))?;
        let dir = fs::canonicalize(dir)?;

        let ca_key = KeyPair::generate()?;
        let mut ca = self.params("Imori development CA", &[])?;
        ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        write(&dir, "ca.pem", &ca.self_signed(&ca_key)?.pem())?;
        write(&dir, "ca-key.pem", &ca_key.serialize_pem())?;
        let ca = Issuer::new(ca, ca_key);

        let mut names: Vec<String> = LOCAL_NAMES.map(String::from).to_vec();
        for name in &self.names {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        let server = self.params("Imori development broker", &names)?;
        issue(&dir, "server", server, ExtendedKeyUsagePurpose::ServerAuth, &ca)?;
        let client = self.params(&self.user, &[])?;
        issue(&dir, "client", client, ExtendedKeyUsagePurpose::ClientAuth, &ca)?;
        print_line(&config(&dir))
    }

    fn params(&self, common_name: &str, names: &[String]) -> anyhow::Result<CertificateParams> {
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, common_name);
        // Tolerates clients whose clock is slightly slow.
        let now = SystemTime::now();
        params.not_before = (now - HOUR).into();
        params.not_after = (now + DAY * u32::from(self.days)).into();
        Ok(params)
    }
}

fn is_name(name: &str) -> bool {
    name.parse::<IpAddr>().is_ok() || name.parse::<imori_server::config::HostName>().is_ok()
}

fn issue(
    dir: &Path,
    name: &str,
    mut params: CertificateParams,
    purpose: ExtendedKeyUsagePurpose,
    ca: &Issuer<'_, KeyPair>,
) -> anyhow::Result<()> {
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![purpose];
    params.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    write(dir, &format!("{name}.pem"), &params.signed_by(&key, ca)?.pem())?;
    write(dir, &format!("{name}-key.pem"), &key.serialize_pem())
}

/// SECURITY OPS-03: only the owner can read the files.
fn write(dir: &Path, name: &str, text: &str) -> anyhow::Result<()> {
    let path = dir.join(name);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    file.write_all(text.as_bytes()).with_context(|| format!("`{}` cannot be written", path.display()))
}

/// The configuration that uses the files.
fn config(dir: &Path) -> String {
    let path = |name: &str| dir.join(name).display().to_string();
    format!(
        "[tls]\n\
         certificate = \"{}\"\n\
         key = \"{}\"\n\
         client_ca = \"{}\"\n\
         client_certificates = \"asked\"\n\
         user_from = \"cn\"\n\
         \n\
         [nats]\n\
         tls = \"offered\"\n\
         \n\
         [listeners]\n\
         stomp_tls = [\"127.0.0.1:61614\", \"[::1]:61614\"]\n\
         amqp_tls = [\"127.0.0.1:5671\", \"[::1]:5671\"]\n\
         ws_tls = [\"127.0.0.1:15676\", \"[::1]:15676\"]\n\
         admin_tls = [\"127.0.0.1:15671\", \"[::1]:15671\"]",
        path("server.pem"),
        path("server-key.pem"),
        path("ca.pem"),
    )
}
