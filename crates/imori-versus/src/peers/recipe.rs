//! Starts each kind of peer on loopback, with all its files in a folder of its own and on unused ports.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use imori_bench::url::Scheme;

use crate::peers::found::Program;
use crate::peers::peer::{Kind, Origin, Peer};

/// The command line of a peer, with its configuration.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Recipe {
    /// Program and arguments.
    pub(crate) command: Vec<String>,
    /// Additional environment variables.
    pub(crate) environment: Vec<(String, String)>,
    /// Configuration files and their texts, for the report.
    pub(crate) configuration: Vec<(String, String)>,
    /// File with the pid of the serving process, if that is not the started one.
    pub(crate) pid_file: Option<PathBuf>,
    /// Shell command that ends it, if signals are not suitable.
    pub(crate) stop: Option<String>,
    /// Time for it to end.
    pub(crate) grace: Duration,
}

/// More than a broker on a virtual machine needs to write its state to disk.
pub(crate) const GRACE: Duration = Duration::from_secs(60);

/// Writes the configuration of a peer into its folder, and returns its command line.
pub(crate) fn prepare(peer: &Peer, found: Option<&Program>, folder: &Path, port: u16) -> Result<Recipe> {
    let nothing = Program::default();
    let found = found.unwrap_or(&nothing);
    let mut recipe = match &peer.origin {
        Origin::Known(Kind::Imori) | Origin::Program(_) => imori(peer.protocol, found, folder, port),
        Origin::Known(Kind::NatsServer) => nats_server(found, folder, port)?,
        Origin::Known(Kind::Rabbitmq | Kind::RabbitmqQuorum) => rabbitmq(peer.protocol, found, folder, port)?,
        Origin::Known(Kind::Artemis) => artemis(found, folder, port)?,
        Origin::Known(Kind::BrokerJ) => broker_j(found, folder, port)?,
        Origin::Known(Kind::Activemq) => activemq(found, folder, port)?,
        Origin::Known(Kind::Relay) => {
            let address = format!("127.0.0.1:{port}");
            Recipe { command: command(found, &[&address, peer.protocol.word()]), ..Recipe::default() }
        }
        Origin::Known(Kind::Zeromq) => Recipe {
            command: command(found, &[peer.protocol.word(), &port.to_string()]),
            ..Recipe::default()
        },
        Origin::Known(Kind::Grpc) => {
            Recipe { command: command(found, &[&port.to_string()]), ..Recipe::default() }
        }
        Origin::Commanded { start, stop } => Recipe {
            command: ["sh", "-c", start].map(str::to_owned).to_vec(),
            stop: stop.clone(),
            ..Recipe::default()
        },
        Origin::Elsewhere => Recipe::default(),
    };
    recipe.grace = GRACE;
    Ok(recipe)
}

/// A port that is free at the moment.
pub(crate) fn free_port() -> Result<u16> {
    let probe = TcpListener::bind(("127.0.0.1", 0)).context("loopback has no free port")?;
    Ok(probe.local_addr()?.port())
}

fn command(found: &Program, arguments: &[&str]) -> Vec<String> {
    let program = found.program.to_string_lossy().into_owned();
    std::iter::once(program).chain(arguments.iter().map(|&argument| argument.to_owned())).collect()
}

fn imori(protocol: Scheme, found: &Program, folder: &Path, port: u16) -> Recipe {
    // One listener serves both versions of AMQP.
    let listener = if protocol == Scheme::Amqp10 { Scheme::Amqp } else { protocol };
    let listen = format!("{}=127.0.0.1:{port}", listener.word());
    let data = folder.join("data").to_string_lossy().into_owned();
    Recipe {
        command: command(found, &["serve", "--listen", &listen, "--data-dir", &data]),
        ..Recipe::default()
    }
}

/// Core NATS with default settings, without JetStream.
fn nats_server(found: &Program, folder: &Path, port: u16) -> Result<Recipe> {
    let text = format!("listen: \"127.0.0.1:{port}\"\n");
    let file = write(folder, "nats-server.conf", &text)?;
    Ok(Recipe {
        command: command(found, &["--config", &file]),
        configuration: vec![("nats-server.conf".to_owned(), text)],
        ..Recipe::default()
    })
}

/// A node with its own name, folders, ports and port mapper.
fn rabbitmq(protocol: Scheme, found: &Program, folder: &Path, port: u16) -> Result<Recipe> {
    let (other, distribution, mapper) = (free_port()?, free_port()?, free_port()?);
    let (amqp, stomp) = if protocol == Scheme::Amqp { (port, other) } else { (other, port) };
    for name in ["data", "log", "home"] {
        fs::create_dir_all(folder.join(name))?;
    }
    let plugins = "[rabbitmq_stomp].\n".to_owned();
    let text = format!(
        "listeners.tcp.1 = 127.0.0.1:{amqp}\nstomp.listeners.tcp.1 = 127.0.0.1:{stomp}\nlog.file.level = warning\n"
    );
    let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let environment = [
        ("HOME", path("home")),
        ("RABBITMQ_NODENAME", format!("imori-bench-{port}@localhost")),
        ("RABBITMQ_CONF_ENV_FILE", write(folder, "rabbitmq-env.conf", "")?),
        ("RABBITMQ_CONFIG_FILE", write(folder, "rabbitmq.conf", &text)?),
        ("RABBITMQ_ENABLED_PLUGINS_FILE", write(folder, "enabled_plugins", &plugins)?),
        ("RABBITMQ_MNESIA_BASE", path("data")),
        ("RABBITMQ_LOG_BASE", path("log")),
        ("RABBITMQ_PID_FILE", path("pid")),
        ("RABBITMQ_DIST_PORT", distribution.to_string()),
        ("RABBITMQ_NODE_PORT", amqp.to_string()),
        ("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1".to_owned()),
        ("ERL_EPMD_PORT", mapper.to_string()),
        ("ERL_EPMD_ADDRESS", "127.0.0.1".to_owned()),
    ];
    Ok(Recipe {
        command: command(found, &[]),
        environment: environment.map(|(name, value)| (name.to_owned(), value)).to_vec(),
        configuration: vec![("rabbitmq.conf".to_owned(), text), ("enabled_plugins".to_owned(), plugins)],
        pid_file: Some(folder.join("pid")),
        ..Recipe::default()
    })
}

/// An instance created by Artemis itself, with only the acceptor for all protocols.
fn artemis(found: &Program, folder: &Path, port: u16) -> Result<Recipe> {
    let instance = folder.join("instance");
    let web = free_port()?;
    let created = Command::new(&found.program)
        .arg("create")
        .arg(&instance)
        .args(["--silent", "--user", "guest", "--password", "guest", "--allow-anonymous"])
        .args(["--host", "127.0.0.1", "--default-port", &port.to_string(), "--http-port", &web.to_string()])
        // `create` measures the disk and configures the journal's write delay accordingly. Without
        // that, the delay is 3.3 ms, which no real installation has.
        .args(["--relax-jolokia", "--no-web"])
        .args(["amqp", "hornetq", "mqtt", "stomp"].map(|protocol| format!("--no-{protocol}-acceptor")))
        .output()
        .context("Artemis cannot create an instance")?;
    ensure!(
        created.status.success(),
        "Artemis cannot create an instance: {}",
        String::from_utf8_lossy(&created.stderr).trim()
    );
    let file = instance.join("etc").join("broker.xml");
    let text = fs::read_to_string(&file).context("Artemis wrote no `broker.xml`")?;
    // The acceptor for all protocols listens on all addresses, regardless of `--host`.
    let text = text.replace("tcp://0.0.0.0:", "tcp://127.0.0.1:");
    fs::write(&file, &text)?;
    let profile = fs::read_to_string(instance.join("etc").join("artemis.profile")).unwrap_or_default();
    let program = instance.join("bin").join("artemis").to_string_lossy().into_owned();
    Ok(Recipe {
        command: vec![program, "run".to_owned()],
        configuration: vec![("broker.xml".to_owned(), text), ("artemis.profile".to_owned(), profile)],
        ..Recipe::default()
    })
}

/// A virtual host with the default store, which creates queues on first use.
fn broker_j(found: &Program, folder: &Path, port: u16) -> Result<Recipe> {
    let virtual_host = r#"{\"type\":\"BDB\",\"nodeAutoCreationPolicies\":[{\"pattern\":\".*\",\"createdOnPublish\":\"true\",\"createdOnConsume\":\"true\",\"nodeType\":\"queue\",\"attributes\":{}}]}"#;
    let text = format!(
        r#"{{
  "name": "imori-bench",
  "modelVersion": "9.0",
  "authenticationproviders": [{{"name": "plain", "type": "Plain", "secureOnlyMechanisms": [],
    "users": [{{"name": "guest", "type": "managed", "password": "guest"}}]}}],
  "ports": [{{"name": "AMQP", "port": "{port}", "bindingAddress": "127.0.0.1", "authenticationProvider": "plain",
    "virtualhostaliases": [{{"name": "defaultAlias", "type": "defaultAlias"}},
      {{"name": "hostnameAlias", "type": "hostnameAlias"}}]}}],
  "virtualhostnodes": [{{"name": "default", "type": "JSON", "defaultVirtualHostNode": "true",
    "virtualHostInitialConfiguration": "{virtual_host}"}}]
}}
"#
    );
    let file = write(folder, "config.json", &text)?;
    let work = folder.join("work").to_string_lossy().into_owned();
    fs::create_dir_all(&work)?;
    Ok(Recipe {
        command: command(found, &["-icp", &file]),
        environment: vec![("QPID_WORK".to_owned(), work)],
        configuration: vec![("config.json".to_owned(), text)],
        ..Recipe::default()
    })
}

/// The default store and one connector.
fn activemq(found: &Program, folder: &Path, port: u16) -> Result<Recipe> {
    let data = folder.join("data").to_string_lossy().into_owned();
    let text = format!(
        r#"<beans xmlns="http://www.springframework.org/schema/beans"
    xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
    xsi:schemaLocation="http://www.springframework.org/schema/beans
        http://www.springframework.org/schema/beans/spring-beans.xsd
        http://activemq.apache.org/schema/core http://activemq.apache.org/schema/core/activemq-core.xsd">
  <broker xmlns="http://activemq.apache.org/schema/core" brokerName="imori-bench" dataDirectory="{data}" useJmx="false">
    <persistenceAdapter><kahaDB directory="{data}/kahadb"/></persistenceAdapter>
    <transportConnectors>
      <transportConnector name="amqp" uri="amqp+nio://127.0.0.1:{port}?wireFormat.maxFrameSize=104857600"/>
    </transportConnectors>
  </broker>
</beans>
"#
    );
    let file = write(folder, "activemq.xml", &text)?;
    Ok(Recipe {
        command: command(found, &["console", &format!("xbean:file:{file}")]),
        environment: vec![("ACTIVEMQ_DATA".to_owned(), data)],
        configuration: vec![("activemq.xml".to_owned(), text)],
        ..Recipe::default()
    })
}

/// Writes a file and returns its path.
fn write(folder: &Path, name: &str, text: &str) -> Result<String> {
    let file = folder.join(name);
    fs::write(&file, text).with_context(|| format!("`{}` cannot be written", file.display()))?;
    Ok(file.to_string_lossy().into_owned())
}
