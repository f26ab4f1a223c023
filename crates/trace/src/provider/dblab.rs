//! Thin clones of a DBLab Engine, through its HTTP API.
//!
//! Source: DBLab Engine 4.0, `engine/api/swagger-spec/dblab_openapi.yaml` and `engine/pkg/client/dblabapi`.

use super::{Answer, CloneProvider, ServerInfo, ThinClone};
use crate::Error;
use crate::address::Address;
use crate::connection::Connection;
use crate::runtime::{block_on, unless_interrupted};
use serde_json::{Value, json};
use std::io::Read;
use std::time::{Duration, Instant};
use tokio_postgres::Config;

/// Clones of ours have names that begin with this.
const PREFIX: &str = "pgvet-";
/// Timeout for creating or deleting a clone.
const PATIENCE: Duration = Duration::from_secs(600);
const INTERVAL: Duration = Duration::from_millis(200);
/// Timeout for a single HTTP response.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Where the engine is, and what to clone.
#[derive(Clone)]
pub struct DblabOptions {
    /// `https://dblab.example.com`.
    pub url: String,
    /// The verification token. Never from an argument: other users see those.
    pub token: String,
    pub database: String,
    /// `main`, unless another is named.
    pub branch: Option<String>,
    /// The newest, unless another is named.
    pub snapshot: Option<String>,
}

/// Clones of a DBLab Engine.
pub struct Dblab {
    options: DblabOptions,
    agent: ureq::Agent,
    created: usize,
    clones: Vec<String>,
    /// The first clone, which was needed to learn the version.
    ready: Option<ThinClone>,
}

impl Dblab {
    pub fn new(options: DblabOptions) -> Self {
        let config = ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(TIMEOUT));
        // A redirect would take the token to another host.
        let config = config.max_redirects(0).max_redirects_will_error(true);
        Self { options, agent: config.build().into(), created: 0, clones: Vec::new(), ready: None }
    }

    /// Calls the engine, and returns the status and the document that it answers.
    async fn call(&self, method: &'static str, path: &str, body: Option<Value>) -> Result<(u16, Value), Error> {
        check_address(&self.options.url)?;
        let url = format!("{}{path}", self.options.url.trim_end_matches('/'));
        let mut request = ureq::http::Request::builder().method(method).uri(&url);
        request = request.header("Verification-Token", &self.options.token).header("Content-Type", "application/json");
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let request = request.body(body).map_err(|error| Error::new(format!("`{url}` is not an address: {error}")))?;
        let agent = self.agent.clone();
        let answer = tokio::task::spawn_blocking(move || {
            let mut response = agent.run(request)?;
            let text = response.body_mut().read_to_string()?;
            Ok::<_, ureq::Error>((response.status().as_u16(), text))
        });
        let answer = answer.await.map_err(|error| Error::new(format!("the request to DBLab failed: {error}")))?;
        let (status, text) =
            answer.map_err(|error| Error::new(format!("cannot reach DBLab at {}: {error}", self.options.url)))?;
        Ok((status, serde_json::from_str(&text).unwrap_or(Value::Null)))
    }

    /// The same, where anything but success is an error.
    async fn succeed(&self, method: &'static str, path: &str, body: Option<Value>) -> Result<Value, Error> {
        let (status, answer) = self.call(method, path, body).await?;
        if (200..300).contains(&status) { Ok(answer) } else { Err(refused(method, path, status, &answer)) }
    }

    async fn new_clone(&mut self) -> Result<ThinClone, Error> {
        self.created += 1;
        let id = format!("{PREFIX}{}-{}-{}", host(), std::process::id(), self.created);
        let password = password()?;
        let body = json!({
            "id": id,
            "protected": false,
            "db": { "username": "pgvet", "password": password, "restricted": false, "db_name": self.options.database },
            "branch": self.options.branch,
            "snapshot": self.options.snapshot.as_ref().map(|snapshot| json!({ "id": snapshot })),
            "extra_conf": { "autovacuum": "off" },
        });
        // From here on it may exist, whatever is answered.
        self.clones.push(id.clone());
        self.succeed("POST", "/clone", Some(body)).await?;
        let clone = self.until_ready(&id).await?;
        self.reach(&clone, &password)
    }

    async fn until_ready(&self, id: &str) -> Result<Value, Error> {
        let asked = Instant::now();
        loop {
            let (status, clone) = self.call("GET", &format!("/clone/{id}"), None).await?;
            if status == 404 {
                return Err(Error::new(format!("the clone `{id}` vanished while it was made")));
            }
            if status != 200 {
                return Err(refused("GET", "/clone", status, &clone));
            }
            match clone["status"]["code"].as_str() {
                Some("OK" | "WARNING") => return Ok(clone),
                Some("CREATING" | "RESETTING") if asked.elapsed() < PATIENCE => tokio::time::sleep(INTERVAL).await,
                Some("CREATING" | "RESETTING") => {
                    return Err(Error::new(format!("the clone `{id}` was not ready after {} s", PATIENCE.as_secs())));
                }
                other => {
                    let said = clone["status"]["message"].as_str().unwrap_or_default();
                    return Err(Error::new(format!(
                        "the clone `{id}` failed: {} {said}",
                        other.unwrap_or("no status")
                    )));
                }
            }
        }
    }

    /// How to connect to a clone. The password is never answered.
    fn reach(&self, clone: &Value, password: &str) -> Result<ThinClone, Error> {
        let db = &clone["db"];
        let text = |field: &str| db[field].as_str().unwrap_or_default();
        let port = text("port").parse().map_err(|_| Error::new("DBLab does not return the port of the clone"))?;
        // The engine names itself as it sees itself.
        let host = match text("host") {
            "" | "localhost" | "127.0.0.1" => host_of(&self.options.url),
            other => other,
        };
        let address = |database: &str| {
            let mut config = Config::new();
            config.host(host).port(port).user("pgvet").password(password).dbname(database);
            Address::try_from(config)
        };
        Ok(ThinClone { database: address(&self.options.database)?, observer: address("postgres")? })
    }

    async fn delete(&self, id: &str) -> Result<(), Error> {
        let path = format!("/clone/{id}");
        let (status, answer) = self.call("DELETE", &path, None).await?;
        if status != 404 && !(200..300).contains(&status) {
            return Err(refused("DELETE", &path, status, &answer));
        }
        let asked = Instant::now();
        while self.call("GET", &path, None).await?.0 != 404 && asked.elapsed() < PATIENCE {
            tokio::time::sleep(INTERVAL).await;
        }
        Ok(())
    }

    /// Deletes clones of ours that runs which were killed have left. Returns their names.
    pub fn remove_leftovers_now(&self) -> Result<Vec<String>, Error> {
        block_on(unless_interrupted(async {
            let status = self.succeed("GET", "/status", None).await?;
            let clones = status["cloning"]["clones"].as_array().cloned().unwrap_or_default();
            let ids = clones.iter().filter_map(|clone| clone["id"].as_str());
            let mut removed = Vec::new();
            for id in ids.filter(|id| is_forgotten(id)) {
                self.delete(id).await?;
                removed.push(id.to_owned());
            }
            Ok(removed)
        }))
    }
}

/// The name of this machine, as a part of the name of a clone.
fn host() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().to_lowercase();
    let name: String = name.chars().filter(char::is_ascii_alphanumeric).take(24).collect();
    if name.is_empty() { "host".to_owned() } else { name }
}

/// Whether it is `pgvet-HOST-PID-N` of a process of this machine that has ended. Nothing is known of those of others.
fn is_forgotten(id: &str) -> bool {
    use rustix::process::{Pid, test_kill_process};
    let numbers = id.strip_prefix(PREFIX).and_then(|rest| rest.strip_prefix(&host())?.strip_prefix('-'));
    let pid = numbers.and_then(|rest| rest.split('-').next()?.parse().ok()).and_then(Pid::from_raw);
    pid.is_some_and(|pid| matches!(test_kill_process(pid), Err(rustix::io::Errno::SRCH)))
}

/// Refuses an address to which a token would go in clear text.
fn check_address(url: &str) -> Result<(), Error> {
    let is_near = ["localhost", "127.0.0.1", "[::1]"].contains(&host_of(url));
    if url.starts_with("https://") || (url.starts_with("http://") && is_near) {
        return Ok(());
    }
    Err(Error::new(format!("`{url}` would send the token in clear text")).help("name an address with https://"))
}

fn refused(method: &str, path: &str, status: u16, answer: &Value) -> Error {
    let said = answer["message"].as_str().unwrap_or("no reason is given");
    if status == 401 || answer["code"] == "UNAUTHORIZED" {
        return Error::new(format!("DBLab refuses the token: {said}")).help("set DBLAB_TOKEN to a valid token");
    }
    Error::new(format!("DBLab refuses {method} {path} ({status}): {said}"))
}

/// The host in `https://host:port/path`.
fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or_default();
    authority.rsplit_once(':').map_or(authority, |(host, _)| host)
}

/// Nobody needs to know it, so nobody can guess it.
fn password() -> Result<String, Error> {
    let mut bytes = [0_u8; 16];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut bytes));
    read.map_err(|error| Error::new(format!("cannot make a password: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat())
}

impl CloneProvider for Dblab {
    fn name(&self) -> &'static str {
        "dblab"
    }

    fn prepare(&mut self) -> Answer<'_, ServerInfo> {
        Box::pin(async {
            let clone = self.new_clone().await?;
            let id = self.clones.last().cloned().unwrap_or_default();
            let answer = self.succeed("GET", &format!("/clone/{id}"), None).await?;
            let mut info = ServerInfo::ask(&Connection::open(&clone.database, "provider").await?).await?;
            if let Some(at) = answer["snapshot"]["dataStateAt"].as_str().filter(|at| !at.is_empty()) {
                info.notes.push(format!("the data is from {at}"));
            }
            info.has_schema = true;
            self.ready = Some(clone);
            Ok(info)
        })
    }

    fn create(&mut self) -> Answer<'_, ThinClone> {
        Box::pin(async {
            match self.ready.take() {
                Some(clone) => Ok(clone),
                None => self.new_clone().await,
            }
        })
    }

    fn discard(&mut self, _: ThinClone) -> Answer<'_, ()> {
        self.destroy()
    }

    fn destroy(&mut self) -> Answer<'_, ()> {
        Box::pin(async {
            self.ready = None;
            for id in std::mem::take(&mut self.clones) {
                self.delete(&id).await?;
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_taken_out_of_the_address() {
        assert_eq!(host_of("https://dblab.example.com:2345/api"), "dblab.example.com");
        assert_eq!(host_of("http://localhost"), "localhost");
    }

    #[test]
    fn the_token_goes_over_no_open_network() {
        for url in ["https://dblab.example.com", "http://localhost:2345", "http://127.0.0.1:1", "http://[::1]:2345/a"] {
            assert!(check_address(url).is_ok(), "{url}");
        }
        for url in ["http://dblab.example.com", "ftp://h", "h", "http://localhost.evil.example", "http://localhost@h"] {
            assert!(check_address(url).is_err(), "{url}");
        }
    }

    #[test]
    fn only_clones_of_this_machine_are_forgotten() {
        let mut dead = std::process::Command::new("true").spawn().unwrap();
        dead.wait().unwrap();
        let (dead, living, host) = (dead.id(), std::process::id(), host());
        assert!(is_forgotten(&format!("pgvet-{host}-{dead}-1")));
        for id in [format!("pgvet-{host}-{living}-1"), format!("pgvet-{dead}-1"), format!("pgvet-x{host}-{dead}-1")] {
            assert!(!is_forgotten(&id), "{id}");
        }
    }

    #[test]
    fn passwords_are_long_and_differ() {
        let (one, other) = (password().unwrap(), password().unwrap());
        assert_eq!(one.len(), 32);
        assert_ne!(one, other);
    }

    #[test]
    fn a_refused_token_says_what_to_set() {
        let answer = json!({ "code": "UNAUTHORIZED", "message": "Check your verification token." });
        let error = refused("POST", "/clone", 401, &answer).to_string();
        assert!(error.contains("Check your verification token.") && error.contains("DBLAB_TOKEN"), "{error}");
    }
}
