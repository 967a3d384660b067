//! A real nginx in front of an application of few workers.
//!
//! nginx itself does not melt: it holds thousands of slow connections in little memory. What melts is what stands
//! behind it, and that is how nginx is used where pages are made: with PHP-FPM, uWSGI or the like on a Unix socket,
//! whose workers and queue are few. So that is what is tested: nginx with an SCGI application of
//! [`WORKERS`](crate::page::WORKERS) workers and a queue of 16. When the queue is full nginx answers 502.

use crate::process::{free_port, program};
use crate::{Folder, Process};
use std::fs::{self, Permissions};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// How many connections may wait for the application.
const BACKLOG: &str = "16";
/// The same where nobody tells the gateway how many workers there are: as many as application servers take by themselves.
const USUAL_BACKLOG: &str = "128";
/// While it is there, the application takes twice as long.
const SLOW: &str = "slow";

/// nginx and its application, with one page, `/page`, in a full and a light tree.
#[derive(Debug)]
pub struct Nginx {
    /// Where it listens.
    pub address: SocketAddr,
    /// The running server.
    pub process: Process,
    _application: Process,
    folder: Folder,
}

/// An application whose pages vary.
#[derive(Clone, Copy, Debug)]
pub struct Varied {
    /// How many requests it works on at once.
    pub workers: usize,
    /// What a page takes on the mean; the times are exponential.
    pub mean: Duration,
}

impl Nginx {
    /// Starts both; `page` is the application. Panics, with the log, if one does not come up.
    #[must_use]
    pub fn start(page: &Path) -> Nginx {
        Nginx::with(page, |command, _| {
            command.arg(BACKLOG);
        })
    }

    /// The same with an application whose pages vary.
    #[must_use]
    pub fn varied(page: &Path, varied: Varied) -> Nginx {
        Nginx::with(page, |command, folder| {
            let Varied { workers, mean } = varied;
            command.arg(USUAL_BACKLOG).arg(workers.to_string()).arg(mean.as_micros().to_string());
            command.arg(folder.path().join(SLOW));
        })
    }

    /// Makes the application that varies take twice as long from now on, or as long as before.
    ///
    /// # Panics
    /// If it cannot be told.
    pub fn slow_down(&self, slow: bool) {
        if slow {
            self.folder.write(SLOW, "");
        } else {
            fs::remove_file(self.folder.path().join(SLOW))
                .unwrap_or_else(|error| panic!("the application stays slow: {error}"));
        }
    }

    fn with(page: &Path, arguments: impl FnOnce(&mut Command, &Folder)) -> Nginx {
        let folder = Folder::new();
        let socket = folder.path().join("page.sock");
        let mut command = Command::new(page);
        command.arg(&socket);
        arguments(&mut command, &folder);
        let mut application = Process::spawn("page-scgi", &mut command, &folder.path().join("page.log"));
        application.wait_for("readiness", |log| log.contains("ready").then_some(()));
        // nginx's workers run as another user.
        fs::set_permissions(&socket, Permissions::from_mode(0o777))
            .unwrap_or_else(|error| panic!("cannot open {} to nginx: {error}", socket.display()));

        let port = free_port();
        let configuration = folder.write("nginx.conf", configuration(folder.path(), port));
        let log = folder.path().join("nginx.log");
        let mut command = Command::new(program("nginx"));
        command.arg("-e").arg("/dev/stderr").arg("-c").arg(configuration);
        let mut process = Process::spawn("nginx", &mut command, &log);
        process.wait_for("readiness", |log| log.contains("start worker process ").then_some(()));
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Nginx { address, process, _application: application, folder }
    }
}

fn configuration(folder: &Path, port: u16) -> String {
    let folder = folder.display();
    let user = if nix::unistd::geteuid().is_root() { "user www-data;\n" } else { "" };
    format!(
        "daemon off;\n\
         worker_processes 1;\n\
         pid {folder}/nginx.pid;\n\
         error_log /dev/stderr notice;\n\
         {user}\
         events {{ worker_connections 1024; }}\n\
         http {{\n\
           access_log off;\n\
           client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;\n\
           uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;\n\
           scgi_buffers 8 16k;\n\
           keepalive_timeout 60s;\n\
           keepalive_requests 1000000;\n\
           server {{\n\
             listen 127.0.0.1:{port};\n\
             location / {{\n\
               scgi_pass unix:{folder}/page.sock;\n\
               scgi_param REQUEST_URI $request_uri;\n\
               scgi_param CONTENT_LENGTH $content_length;\n\
             }}\n\
           }}\n\
         }}\n"
    )
}
