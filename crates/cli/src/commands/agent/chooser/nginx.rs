//! nginx's `split_clients`: a keyed hash of the client, and the fraction of hashes that get full quality.
//!
//! A signal to the process that the pid file names makes nginx read its configuration again; nginx then starts new workers and
//! lets the old ones finish. A hash below the fraction is also below a larger fraction, so no client loses quality when the
//! fraction rises. The hash is MurmurHash2: it is uniform, but a client that knew the key could choose its group. Therefore the
//! key is derived from the seed, and the seed itself is not written. If no seed is configured, the key is drawn, and the file
//! that nginx reads keeps it.

use super::{Chooser, FIRST_LINE, Trees, fraction_of, writable};
use crate::output::failure::replace;
use crate::service::state::seed::drawn;
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use plimsoll_config::Nginx;
use plimsoll_core::random::Random;
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// The number of steps of the fraction: nginx's percentages have two decimals.
const STEPS: f64 = 10_000.0;

/// The file with `split_clients`, and the nginx that reads it.
pub(super) struct NginxSplit {
    pub(super) nginx: Nginx,
    pub(super) trees: Trees,
    key: u64,
}

impl NginxSplit {
    pub(super) fn new(nginx: Nginx, trees: Trees) -> Self {
        let kept = || kept_key(&fs::read_to_string(&nginx.file).ok()?);
        let key = match nginx.seed {
            Some(seed) => Random::new(seed).bits(),
            None => kept().unwrap_or_else(drawn),
        };
        NginxSplit { nginx, trees, key }
    }

    /// Has nginx read the file. nginx says only in its own log that it refused a configuration, so it is asked before.
    fn reload(&self) -> io::Result<()> {
        let pid = self.pid()?;
        self.dump().map_err(io::Error::other)?;
        kill(pid, Signal::SIGHUP).map_err(|error| {
            io::Error::other(format!("cannot signal nginx ({}): {error}", self.nginx.pid.display()))
        })
    }

    /// The process that the pid file names. The error is `NotFound` if the file names none, as after `nginx -T`.
    fn pid(&self) -> io::Result<Pid> {
        let name = self.nginx.pid.display();
        let text = fs::read_to_string(&self.nginx.pid)
            .map_err(|error| io::Error::new(error.kind(), format!("cannot read {name}: {error}")))?;
        if text.trim().is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, format!("{name} is empty")));
        }
        let pid = text.trim().parse::<i32>().ok().filter(|pid| *pid > 1);
        let pid = pid.ok_or_else(|| io::Error::other(format!("{name} holds no process id")))?;
        // The kernel keeps fifteen bytes of a program's name.
        let program = self.nginx.program.file_name().unwrap_or_default().as_encoded_bytes();
        let found = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
        let found = found.trim_ascii_end();
        if !found.is_empty() && found != &program[..program.len().min(15)] {
            let (found, program) = (String::from_utf8_lossy(found), self.nginx.program.display());
            let why = format!("{name} names process {pid}, which is `{found}` and not `{program}`");
            return Err(io::Error::new(io::ErrorKind::NotFound, why));
        }
        Ok(Pid::from_raw(pid))
    }

    /// Whether nginx runs, as far as its pid file shows.
    fn runs(&self) -> bool {
        match self.pid() {
            Ok(pid) => kill(pid, None) != Err(Errno::ESRCH),
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }

    /// Everything that nginx reads (`nginx -T`), or what nginx finds wrong with its configuration.
    fn dump(&self) -> Result<String, String> {
        let program = self.nginx.program.display();
        let mut command = Command::new(&self.nginx.program);
        command.arg("-T").stdin(Stdio::null());
        if let Some(file) = &self.nginx.configuration {
            command.arg("-c").arg(std::path::absolute(file).unwrap_or(file.clone()));
        }
        let output = command.output().map_err(|error| {
            format!("cannot run {program}: {error}; name nginx's program with `program` under [nginx]")
        })?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => {
                let said = String::from_utf8_lossy(&output.stderr);
                Err(format!("{program} refuses its configuration:\n{}", said.trim()))
            }
        }
    }
}

/// Whether nginx reads this file, according to the output of `nginx -T`.
fn includes(dump: &str, file: &Path) -> bool {
    let real = |path: &Path| fs::canonicalize(path).ok();
    dump.lines()
        .filter_map(|line| line.strip_prefix("# configuration file ")?.strip_suffix(':'))
        .any(|name| Path::new(name) == file || (real(file).is_some() && real(Path::new(name)) == real(file)))
}

/// Whether nginx uses the variable for a folder, in `root` or `alias`, according to the output of `nginx -T`.
fn takes_folders(dump: &str, variable: &str) -> bool {
    dump.split(['\n', ';', '{', '}']).any(|directive| {
        let mut words = directive.split_ascii_whitespace();
        let is_root = words.next().is_some_and(|name| name == "root" || name == "alias");
        let value = words.next().unwrap_or_default().trim_start_matches('"');
        let rest = value.strip_prefix('$').and_then(|value| value.strip_prefix(variable));
        is_root && rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_'))
    })
}

/// The key in a file that the agent wrote.
fn kept_key(text: &str) -> Option<u64> {
    let (before, _) = text.lines().nth(1)?.rsplit_once("\" $")?;
    u64::from_str_radix(before.rsplit_once('|')?.1, 16).ok()
}

/// The file's text, and the fraction rounded to steps.
fn text(fraction: f64, NginxSplit { nginx, trees, key }: &NginxSplit) -> (String, f64) {
    let steps = (fraction * STEPS).round();
    let fraction = steps / STEPS;
    let Nginx { variable, client, .. } = nginx;
    let Trees { full, degraded } = trees;
    let chosen = match steps {
        // nginx refuses 0 % and 100 %.
        0.0 => format!("* \"{degraded}\";"),
        STEPS => format!("* \"{full}\";"),
        _ => format!("{:.2}% \"{full}\";\n    * \"{degraded}\";", steps / 100.0),
    };
    let text = format!(
        "{FIRST_LINE}{fraction}\nsplit_clients \"{client}|{key:016x}\" ${variable} {{\n    {chosen}\n}}\n"
    );
    (text, fraction)
}

impl Chooser for NginxSplit {
    fn present(&self) -> Result<Option<f64>, String> {
        fraction_of(&self.nginx.file)
    }

    fn check(&self, acts: bool) -> Vec<String> {
        let mut wrong = Vec::new();
        if acts {
            wrong.extend(writable(&self.nginx.file).err());
        }
        let running = self.pid().and_then(|pid| {
            kill(pid, None).map_err(|error| io::Error::other(format!("cannot signal nginx ({pid}): {error}")))
        });
        if let Err(error) = running {
            wrong.push(format!(
                "{error}; start nginx, name the file of its `pid` with `pid` under [nginx], and run as its user or root"
            ));
        }
        match self.dump() {
            Err(why) => wrong.push(why),
            Ok(dump) if !includes(&dump, &self.nginx.file) => wrong.push(format!(
                "nginx does not read {0}; write `include {0};` inside `http {{ }}`, and `${1}` where the tree's name \
                 belongs; then `nginx -s reload`",
                std::path::absolute(&self.nginx.file).unwrap_or(self.nginx.file.clone()).display(),
                self.nginx.variable
            )),
            Ok(dump) => wrong.extend(self.trees.missing(takes_folders(&dump, &self.nginx.variable))),
        }
        wrong
    }

    /// If nginx does not run, no signal can reach it; it reads the file when it starts.
    fn restore(&mut self) -> io::Result<String> {
        let said = "full quality for everybody";
        if self.runs() {
            return self.set(1.0).map(|_| said.to_owned());
        }
        replace(&self.nginx.file, &text(1.0, self).0)?;
        let (file, pid) = (self.nginx.file.display(), self.nginx.pid.display());
        Ok(format!("{said}: {file} is written; nginx does not run (by {pid}), and reads it when it starts"))
    }

    fn set(&mut self, fraction: f64) -> io::Result<f64> {
        let before = fs::read_to_string(&self.nginx.file).ok();
        let (text, fraction) = text(fraction, self);
        replace(&self.nginx.file, &text)?;
        if let Err(error) = self.reload() {
            // The file must state what nginx really does, because `present` reads it, so the old text is put back.
            if let Some(before) = before {
                replace(&self.nginx.file, &before)?;
            }
            return Err(error);
        }
        Ok(fraction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nginx(folder: &Path) -> Nginx {
        Nginx {
            file: folder.join("plimsoll.conf"),
            variable: "plimsoll_tree".to_owned(),
            client: "$remote_addr".to_owned(),
            pid: folder.join("nginx.pid"),
            program: "/no/such/nginx".into(),
            configuration: None,
            seed: Some(7),
        }
    }

    fn trees() -> Trees {
        Trees { full: "/srv/full".to_owned(), degraded: "/srv/light".to_owned() }
    }

    #[test]
    fn what_nginx_reads() {
        let folder = tempfile::tempdir().unwrap();
        let split = NginxSplit::new(nginx(folder.path()), trees());
        let (written, fraction) = text(0.123_456, &split);
        assert_eq!(fraction, 0.1235);
        let lines: Vec<&str> = written.lines().map(str::trim).collect();
        assert!(
            lines[1].starts_with("split_clients \"$remote_addr|")
                && lines[1].ends_with("\" $plimsoll_tree {")
        );
        assert_eq!(lines[2..], ["12.35% \"/srv/full\";", "* \"/srv/light\";", "}"]);
        assert!(!written.contains("|0000000000000007\""), "the seed itself");
        for (fraction, tree) in [(0.0, "/srv/light"), (1.0, "/srv/full"), (0.00001, "/srv/light")] {
            let (written, _) = text(fraction, &split);
            assert!(
                written.contains(&format!("\n    * \"{tree}\";\n}}")) && !written.contains('%'),
                "{written}"
            );
        }
    }

    #[test]
    fn a_key_that_was_drawn_is_kept_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let drawn = || NginxSplit::new(Nginx { seed: None, ..nginx(folder.path()) }, trees());
        let (first, second) = (drawn(), drawn());
        assert_ne!(first.key, second.key);
        fs::write(&first.nginx.file, text(0.5, &first).0).unwrap();
        assert_eq!(drawn().key, first.key);
        let configured = NginxSplit::new(nginx(folder.path()), trees());
        assert_eq!(configured.key, Random::new(7).bits(), "a seed that is configured counts");
    }

    #[test]
    fn without_a_reload_the_file_stays_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let mut split = NginxSplit::new(nginx(folder.path()), trees());
        let (first, _) = text(1.0, &split);
        fs::write(&split.nginx.file, &first).unwrap();
        assert!(split.set(0.5).is_err_and(|error| error.to_string().contains("nginx.pid")));
        assert_eq!(split.present(), Ok(Some(1.0)));
        let wrong = split.check(true);
        assert_eq!(wrong.len(), 2, "{wrong:?}");
        assert!(
            wrong[0].contains("nginx.pid") && wrong[1].contains("cannot run /no/such/nginx"),
            "{wrong:?}"
        );
    }

    #[test]
    fn before_nginx_runs_the_file_is_written_for_its_start() {
        let folder = tempfile::tempdir().unwrap();
        let mut split = NginxSplit::new(nginx(folder.path()), trees());
        let gone = || {
            let mut child = Command::new("true").spawn().unwrap();
            child.wait().unwrap();
            child.id()
        };
        for pid in [None, Some(gone().to_string()), Some(String::new()), Some("\n".to_owned())] {
            drop(fs::remove_file(&split.nginx.file));
            if let Some(pid) = pid {
                fs::write(&split.nginx.pid, pid).unwrap();
            }
            let said = split.restore().unwrap();
            assert!(
                said.contains("nginx does not run") && said.contains("plimsoll.conf is written"),
                "{said}"
            );
            assert_eq!(split.present(), Ok(Some(1.0)));
        }
        // An nginx that was killed has left its number to another program, which must get no signal: this one would end.
        fs::write(&split.nginx.pid, std::process::id().to_string()).unwrap();
        assert!(split.restore().unwrap().contains("nginx does not run"));
        let error = split.set(0.5).unwrap_err().to_string();
        assert!(error.contains("and not `/no/such/nginx`"), "{error}");
        fs::write(&split.nginx.pid, "no number").unwrap();
        assert!(split.restore().is_err_and(|error| error.to_string().contains("holds no process id")));
    }

    #[test]
    fn a_dump_shows_whether_trees_are_folders_and_those_must_be_there() {
        for (text, folders) in [
            ("server { root $plimsoll_tree; }", true),
            ("    alias \"$plimsoll_tree/x\";\n", true),
            ("root $plimsoll_trees;", false),
            ("# root of $plimsoll_tree\nroot /srv;\nproxy_pass http://app$plimsoll_tree$request_uri;", false),
        ] {
            assert_eq!(takes_folders(text, "plimsoll_tree"), folders, "{text}");
        }
        let folder = tempfile::tempdir().unwrap();
        let [full, degraded] = ["full", "light"].map(|tree| folder.path().join(tree).display().to_string());
        let trees = Trees { full: full.clone(), degraded };
        assert_eq!((trees.missing(true).len(), trees.missing(false).len()), (2, 0));
        fs::create_dir(&full).unwrap();
        for surely in [true, false] {
            let missing = trees.missing(surely);
            assert!(missing.len() == 1 && missing[0].contains("/light; `plimsoll adapt`"), "{missing:?}");
        }
    }

    #[test]
    fn a_dump_shows_what_is_included() {
        let dump =
            "# configuration file /etc/nginx/nginx.conf:\nuser x;\n# configuration file /etc/nginx/p.conf:\n";
        assert!(includes(dump, Path::new("/etc/nginx/p.conf")));
        assert!(!includes(dump, Path::new("/etc/nginx/q.conf")));
    }
}
