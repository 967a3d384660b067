//! mod_plimsoll and what the rest of Apache makes of a path while every request gets the light tree: folders, what that tree
//! lacks, handlers, rules of access, scripts, and an application behind the server.

use crate::module::configuration;
use plimsoll_e2e::{Apache, Control, Folder, Response, exchange, module, open_to_all};
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// One level, with a prefix; nothing is exempt.
fn always_light() -> String {
    let light = configuration().replace("[[site.level]]\nname = \"full\"\n", "");
    light.replace("exempt = [{ path = \"/healthz\" }, { path = \"/server-status\" }]\n", "")
}

const SCRIPT: &str =
    "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n%s of %s' \"${PATH_INFO-}\" \"$SCRIPT_NAME\"\n";

/// The site `e2e.test`; before the rest of the same files, which need no module, `front.test` is a proxy.
fn apache(control: &Control) -> Apache {
    let folder = Folder::new();
    let root = folder.path().display().to_string();
    for name in ["docs", "list", "admin", "aliased", "scripts", "light/docs", "light/list", "light/admin"] {
        fs::create_dir_all(folder.path().join(name)).expect("a folder");
        open_to_all(&folder.path().join(name));
    }
    open_to_all(folder.path());
    open_to_all(&folder.path().join("light"));
    for name in ["page.html", "docs/index.html", "docs/secret.html", "admin/page.html"] {
        folder.write(name, format!("full {name}"));
        folder.write(&format!("light/{name}"), format!("light {name}"));
    }
    folder.write("light/50%.html", "light 50%.html");
    for name in ["only.html", "list/only.html", "aliased/page.html"] {
        folder.write(name, format!("full {name}"));
    }
    folder.write("scripts/show", SCRIPT);
    fs::set_permissions(folder.path().join("scripts/show"), fs::Permissions::from_mode(0o755))
        .expect("a mode");
    let content = format!(
        "LoadModule plimsoll_module {library}/mod_plimsoll.so\nPlimsollState {state}\nDocumentRoot {root}\n\
         DirectoryIndex index.html\n<Directory {root}>\nOptions +Indexes\n</Directory>\n\
         <Location /server-status>\nSetHandler server-status\nRequire local\n</Location>\n\
         <Location /admin>\nRequire all denied\n</Location>\nRedirect /old /page.html\n\
         RewriteEngine On\nRewriteRule ^/docs/secret - [F]\nRewriteRule ^/nice$ /page.html [PT]\n\
         RewriteRule ^/plain$ /only.html\n\
         Alias /elsewhere {root}/aliased\nScriptAlias /run {root}/scripts/show\n\
         ScriptAlias /application {root}/scripts/show\nScriptAlias /light/application {root}/scripts/show\n</VirtualHost>\n\
         <VirtualHost *:{{port}}>\nServerName behind.test\nKeepAlive Off\nServerAlias 127.0.0.1\nPlimsollState off\nDocumentRoot {root}\n\
         Header always set Set-Cookie \"one=1; Path=/light/docs; HttpOnly\"\n</VirtualHost>\n\
         <VirtualHost *:{{port}}>\nServerName front.test\nPlimsollState {state}\n\
         <Location /server-status>\nSetHandler server-status\nRequire local\n</Location>\n\
         <Location /admin>\nRequire all denied\n</Location>\nProxyPass /server-status !\n\
         ProxyPass / http://127.0.0.1:{{port}}/\nProxyPassReverse / http://127.0.0.1:{{port}}/\n</VirtualHost>\n\
         <VirtualHost *:{{port}}>\nServerName encoded.test\nPlimsollState {state}\n\
         <Location /admin>\nRequire all denied\n</Location>\n\
         ProxyPass / http://127.0.0.1:{{port}}/ mapping=encoded\n</VirtualHost>\n\
         <VirtualHost *:{{port}}>\nServerName raw.test\nPlimsollState {state}\n\
         ProxyPass / http://127.0.0.1:{{port}}/ nocanon\n",
        library = module().display(),
        state = control.state().display(),
    );
    let modules =
        ["status", "dir", "autoindex", "alias", "cgi", "headers", "proxy", "proxy_http", "mime", "rewrite"];
    Apache::with(folder, (4, 64), &modules, &content)
}

/// In the version without chunks, which a script's answer may else have.
fn ask(apache: &Apache, host: &str, path: &str) -> Response {
    exchange(apache.direct, format!("GET {path} HTTP/1.0\r\nHost: {host}\r\n\r\n"))
}

/// The path of a redirect.
fn place(answer: &Response) -> &str {
    let location = answer.header("location").unwrap_or_default();
    location.split_once("://").map_or(location, |(_, rest)| &rest[rest.find('/').unwrap_or(rest.len())..])
}

#[test]
fn a_light_tree_changes_pages_and_nothing_else_of_a_site() {
    let control = Control::start(&always_light());
    let apache = apache(&control);
    for (path, status, text) in [
        ("/page.html", 200, "light page.html"),
        // The index of a folder is a request inside the server.
        ("/docs/", 200, "light docs/index.html"),
        ("/only.html", 200, "full only.html"),
        ("/list/only.html", 200, "full list/only.html"),
        ("/elsewhere/page.html", 200, "full aliased/page.html"),
        ("/nice", 200, "light page.html"),
        ("/plain", 200, "full only.html"),
        ("/run/more", 200, "/more of /run"),
        ("/application/more", 200, "/more of /application"),
    ] {
        let answer = ask(&apache, "e2e.test", path);
        assert_eq!((answer.status, answer.text().as_str()), (status, text), "{path}");
    }
    let listed = ask(&apache, "e2e.test", "/list/").text();
    assert!(listed.contains("only.html") && listed.contains("Index of /list"), "{listed}");
    assert_eq!(place(&ask(&apache, "e2e.test", "/docs")), "/docs/");
    assert_eq!(place(&ask(&apache, "e2e.test", "/old")), "/page.html");
    let missing = ask(&apache, "e2e.test", "/none.html");
    assert_eq!(missing.status, 404);
    assert!(!missing.text().contains("light"), "{}", missing.text());
    assert_eq!(ask(&apache, "e2e.test", "/docs/secret.html").status, 403, "a rule of mod_rewrite");
    for host in ["e2e.test", "front.test"] {
        assert_eq!(
            ask(&apache, host, "/admin/page.html").status,
            403,
            "{host}: a rule of the path that came"
        );
        let status = ask(&apache, host, "/server-status?auto");
        assert!(
            status.status == 200 && status.text().contains("PlimsollArrived: "),
            "{host}: {}",
            status.text()
        );
    }
}

#[test]
fn an_application_behind_the_server_has_the_prefix_and_clients_never_see_it() {
    let control = Control::start(&always_light());
    let apache = apache(&control);
    let page = ask(&apache, "front.test", "/page.html");
    assert_eq!((page.status, page.text().as_str()), (200, "light page.html"));
    assert_eq!(page.header("set-cookie"), Some("one=1; Path=/docs; HttpOnly"));
    let folder = ask(&apache, "front.test", "/docs");
    assert_eq!((folder.status, place(&folder)), (301, "/docs/"), "{:?}", folder.header("location"));
    assert_eq!(ask(&apache, "front.test", "/docs/").text(), "light docs/index.html");
    assert_eq!(
        ask(&apache, "front.test", "/only.html").status,
        404,
        "only the application knows what it has"
    );
}

/// `ProxyPass` may map paths as they came: the application then gets the encoded form, and the prefix before it.
#[test]
fn an_application_that_is_asked_for_paths_as_they_came_has_the_prefix_too() {
    let control = Control::start(&always_light());
    let apache = apache(&control);
    for host in ["front.test", "encoded.test", "raw.test"] {
        for (path, text) in [
            ("/page.html", "light page.html"),
            ("/p%61ge.html", "light page.html"),
            ("/50%25.html", "light 50%.html"),
        ] {
            let page = ask(&apache, host, path);
            assert_eq!((page.status, page.text().as_str()), (200, text), "{host} {path}");
        }
    }
    assert_eq!(ask(&apache, "encoded.test", "/admin/page.html").status, 403, "a rule of the path that came");
}
