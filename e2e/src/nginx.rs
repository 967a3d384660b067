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

/// How many connections may wait for the application.
const BACKLOG: &str = "16";

/// nginx and its application, with one page, `/page`, in a full and a light tree.
#[derive(Debug)]
pub struct Nginx {
    /// Where it listens.
    pub address: SocketAddr,
    /// The running server.
    pub process: Process,
    _application: Process,
    _folder: Folder,
}

impl Nginx {
    /// Starts both; `page` is the application. Panics, with the log, if one does not come up.
    #[must_use]
    pub fn start(page: &Path) -> Nginx {
        let folder = Folder::new();
        let socket = folder.path().join("page.sock");
        let mut command = Command::new(page);
        command.arg(&socket).arg(BACKLOG);
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
        Nginx { address, process, _application: application, _folder: folder }
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
