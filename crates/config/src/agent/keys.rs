//! The table of the agent's keys, as those of the configuration are in `crate::gateway`.

use super::HttpUrl;
use super::OnExit;
use super::values::{ClientVariable, TreeName, Variable};
use crate::gateway::plants::CostKeys;
use crate::syntax::{Rate, Share, Table, Text, Whole, section};
use plimsoll_core::promises::Plant;
use plimsoll_core::time::Duration;

section! { "the file"
    /// An agent beside an unmodified server.
    AgentKeys {
        /// The server, and what it can carry.
        server: ServerKeys, section;
        /// Where the server's load is read from. Exactly one of the keys.
        load: LoadKeys, section;
        /// The two content trees.
        trees: TreeKeys, section;
        /// Exactly one of `link`, `nginx` and `apache` chooses between them. A link: one tree for all clients.
        link: Table<LinkKeys>, optional;
        /// nginx chooses by client; the fraction of degraded clients is the one that the load line needs.
        nginx: Table<NginxKeys>, optional;
        /// Apache chooses by client; the fraction of degraded clients is the one that the load line needs.
        apache: Table<ApacheKeys>, optional;
        /// How the agent works. Nothing here needs to be set.
        control: AgentControlKeys, section;
    }
}

section! { "[server]"
    /// The server, and what it can carry.
    ServerKeys {
        /// A page that is asked for again and again, over a connection of its own: something cheap, that waits in the
        /// same queue as all others. If nginx stands in front of an application, a page that the application answers.
        probe: HttpUrl, required("write a cheap page of the server: `probe = \"http://127.0.0.1/robots.txt\"`");
        /// Time from one probe to the next.
        every: Duration, default(Duration::from_millis(500));
        /// The response time that was promised: a probe that takes longer is a sign of overload. Default: nine tenths of
        /// the time that a full queue takes, as measured, but at most a second.
        response_time: Duration, optional;
        /// How many connections wait in its listen queue. Apache: `ListenBacklog`. nginx: `backlog` of `listen`, or that of
        /// the application behind it.
        queue: Whole<1, 1_000_000>, default(Whole(511));
        /// How many requests it works on at once. Apache: `MaxRequestWorkers`, and it says so itself. nginx:
        /// `worker_processes`, or the processes of the application behind it.
        workers: Whole<1, 1_000_000>, optional;
        /// The file in which the server writes its process id. The processor time of its processes shows a load that is
        /// never seen in service: files, which nginx sends between two looks at its sockets. It counts without `costs`.
        /// Default: `pid` under `[nginx]`.
        pid: Text, optional;
        /// What requests cost, as `plimsoll profile` prints it. With `log` it must be known; status pages say how busy the
        /// server is instead.
        costs: Table<CostKeys>, optional;
        /// What its network link carries, if that may be what runs out first.
        bandwidth: Rate, optional;
        /// The load line: the utilization that a fraction of clients is degraded to hold.
        load_line: Share, default(Share(Plant::LOAD_LINE));
        /// A link goes back to full quality when that would take no more of the server than this. Default: 0.1 below the
        /// load line.
        back_line: Share, optional;
    }
}

section! { "[load]"
    /// Where the server's load is read from. Exactly one of these.
    LoadKeys {
        /// Its access log: Common, Combined, or JSON lines. It is followed through rotation. It should not be written
        /// through a buffer (nginx: `buffer=` or `gzip=` of `access_log`).
        log: Text, optional;
        /// Apache's status page (`mod_status`), with `?auto`.
        server_status: HttpUrl, optional;
        /// nginx's status page (`stub_status`).
        stub_status: HttpUrl, optional;
        /// The interface at which the packets of the probe's port are captured: `"eth0"`, `"lo"`, or `"any"`. For plain HTTP.
        /// It needs the right CAP_NET_RAW, and a program that was built with the feature `wire`.
        wire: Text, optional;
    }
}

section! { "[trees]"
    /// The two content trees. For a link they are folders. For nginx and Apache they are the values of the variable or of
    /// the map: folders, prefixes of paths, or names of upstreams.
    TreeKeys {
        /// The tree of full quality.
        full: TreeName, required("write the tree of full quality: `full = \"/srv/trees/full\"`");
        /// The tree that degraded clients get.
        degraded: TreeName, required("write the degraded tree: `degraded = \"/srv/trees/light\"`");
    }
}

section! { "[link]"
    /// A symbolic link, for all clients alike.
    LinkKeys {
        /// The link, which is the server's document root, or leads to it.
        path: Text, required("write the link that the server serves from: `path = \"/srv/www\"`");
    }
}

section! { "[nginx]"
    /// The file that is written for nginx, and how nginx is made to read it.
    NginxKeys {
        /// The file that is written. Its configuration must `include` it inside `http { }`.
        file: Text, required("write the file that nginx includes: `file = \"/etc/nginx/plimsoll.conf\"`");
        /// The variable that holds a client's tree, without `$`.
        variable: Variable, default(Variable("plimsoll_tree".to_owned()));
        /// What a client is: `$remote_addr`, or a cookie or header of yours, `$cookie_session`.
        client: ClientVariable, default(ClientVariable("$remote_addr".to_owned()));
        /// Where nginx writes its process id: its `pid`.
        pid: Text, default(Text("/run/nginx.pid".to_owned()));
        /// nginx itself, to test its configuration at the start.
        program: Text, default(Text("nginx".to_owned()));
        /// nginx's configuration, if not the one that it has built in.
        configuration: Text, optional;
        /// A smaller change of the fraction is not worth a reload.
        step: Share, default(Share(0.05));
        /// Two reloads are at least this far apart, unless the server is in danger.
        apart: Duration, default(Duration::from_secs(5));
        /// The key of the hash that picks the clients with full quality. Absent: the key in `file`, else one is drawn, so
        /// that no client can compute its luck.
        seed: Whole<0, { i64::MAX as u64 }>, optional;
    }
}

section! { "[apache]"
    /// The file that is written for Apache, which reads it again by itself.
    ApacheKeys {
        /// The text map that is written: a line for each of 256 groups of clients, `00` to `ff`, with its tree.
        map: Text, required("write the map that Apache's `RewriteMap` names: `map = \"/etc/apache2/plimsoll.map\"`");
    }
}

section! { "[control]"
    /// How the agent works.
    AgentControlKeys {
        /// The control period. The load is looked at four times in each.
        period: Duration, default(Duration::from_secs(1));
        /// What the agent leaves behind when it ends.
        on_exit: OnExit, default(OnExit::default());
    }
}
