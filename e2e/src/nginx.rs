//! A real nginx in front of an application of few workers, or over a folder.
//!
//! nginx itself does not melt: it holds thousands of slow connections in little memory. What melts is what stands behind it,
//! and that is how nginx is used where pages are made: with PHP-FPM, uWSGI or the like on a Unix socket, whose workers and
//! queue are few. The tests therefore run nginx with an SCGI application; when its queue is full nginx answers 502.

use crate::application::{SLOW, application};
use crate::model::ServerModel;
use crate::process::{free_port, program};
use crate::{Folder, Process};
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;

const ACCESS_LOG: &str = "access.log";

/// The running server, and its application if it has one.
#[derive(Debug)]
pub struct Nginx {
    /// Where it listens.
    pub address: SocketAddr,
    /// The running process.
    pub process: Process,
    /// The server's files.
    pub folder: Folder,
    _application: Option<Process>,
}

/// Parts of a configuration.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Parts<'a> {
    /// Directives of the http block.
    pub(crate) http: &'a str,
    /// Directives of the server.
    pub(crate) server: &'a str,
    /// What is put before the path of a page that is asked of the application.
    pub(crate) tree: &'a str,
}

impl Nginx {
    /// Serves the pages of a model by the SCGI program `page`. Panics, with the log, if one does not come up.
    pub fn pages(page: &Path, model: ServerModel) -> Nginx {
        Nginx::with_parts(Folder::new(), page, model, Parts::default())
    }

    /// The same with these parts in its configuration.
    pub(crate) fn with_parts(folder: Folder, page: &Path, model: ServerModel, parts: Parts<'_>) -> Nginx {
        let Parts { http, server, tree } = parts;
        let (application, socket) = application(&folder, page, model);
        let place = socket.display();
        let server = format!(
            "{server}\nlocation / {{ scgi_pass unix:{place}; scgi_param REQUEST_URI {tree}$request_uri; \
             scgi_param CONTENT_LENGTH $content_length; }}"
        );
        Nginx { _application: Some(application), ..Nginx::with(folder, http, &server) }
    }

    /// Serves a folder, and answers 503 under `/full`.
    pub fn files(root: &Path) -> Nginx {
        let server = format!("root {};\nlocation /full {{ return 503; }}", root.display());
        Nginx::with(Folder::new(), "", &server)
    }

    /// Serves a folder of trees, compressed where a client takes it so, and answers `/healthz` beside them alone.
    pub fn trees(root: &Path) -> Nginx {
        let server = format!("root {};\nlocation = /healthz {{ return 200 healthy; }}", root.display());
        Nginx::with(Folder::new(), "types { text/html html; } gzip on; gzip_min_length 1;", &server)
    }

    /// Serves a folder of texts, and compresses each anew for every request that takes it so.
    pub fn compressing(root: &Path) -> Nginx {
        let http =
            "gzip on; gzip_comp_level 9; gzip_proxied any; types { text/plain txt; } gzip_types text/plain;";
        Nginx::with(Folder::new(), http, &format!("root {};", root.display()))
    }

    /// Serves a folder with these directives of the http block and of the server, and writes an access log in this format; in
    /// the default one without any.
    pub fn logging(root: &Path, log_format: Option<&str>, (http, server): (&str, &str)) -> Nginx {
        let folder = Folder::new();
        let log = folder.path().join(ACCESS_LOG);
        let format = log_format.map_or(String::new(), |format| format!("log_format own '{format}';"));
        let name = if log_format.is_some() { "own" } else { "" };
        let server = format!("root {};\naccess_log {} {name};\n{server}", root.display(), log.display());
        Nginx::with(folder, &format!("{http}\n{format}"), &server)
    }

    /// Its access log, if it writes one.
    pub fn access_log(&self) -> PathBuf {
        self.folder.path().join(ACCESS_LOG)
    }

    pub(crate) fn with(folder: Folder, http: &str, server: &str) -> Nginx {
        let port = free_port();
        let place = folder.path().display();
        let user = if nix::unistd::geteuid().is_root() { "user www-data;\n" } else { "" };
        let text = format!(
            "daemon off;\nworker_processes 1;\npid {place}/nginx.pid;\nerror_log /dev/stderr notice;\n{user}\
             events {{ worker_connections 4096; }}\n\
             http {{\n{http}\naccess_log off;\nclient_body_temp_path {place}/t1; proxy_temp_path {place}/t2;\n\
             fastcgi_temp_path {place}/t3; uwsgi_temp_path {place}/t4; scgi_temp_path {place}/t5;\n\
             scgi_buffers 8 16k;\nkeepalive_timeout 60s;\nkeepalive_requests 1000000;\n\
             server {{\nlisten 127.0.0.1:{port};\n{server}\n}}\n}}\n"
        );
        let configuration = folder.write("nginx.conf", text);
        let mut command = Command::new(program("nginx"));
        command.arg("-e").arg("/dev/stderr").arg("-c").arg(configuration);
        let mut process = Process::spawn("nginx", &mut command, &folder.path().join("nginx.log"));
        process.wait_for("readiness", |log| log.contains("start worker process ").then_some(()));
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Nginx { address, process, folder, _application: None }
    }

    /// Makes the application take twice as long from now on, or as long as before.
    pub fn slow_down(&self, slow: bool) {
        if slow {
            self.folder.write(SLOW, "");
        } else {
            fs::remove_file(self.folder.path().join(SLOW))
                .unwrap_or_else(|error| panic!("the application stays slow: {error}"));
        }
    }
}
