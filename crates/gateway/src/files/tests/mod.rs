//! The file server against real folders, with time as an argument.

mod answers;
mod changes;
mod escapes;
mod order;

use super::*;
use std::fs;
use std::time::SystemTime;
use tempfile::TempDir;

/// A temporary folder, whose `root` is the tree.
struct Place(TempDir);

impl Place {
    fn new() -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        fs::create_dir(place.at("root")).unwrap();
        place.write("secret.txt", "secret");
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file as if it had not changed for an hour.
    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        self.touch(name, SystemTime::now() - Duration::from_secs(3600));
    }

    fn touch(&self, name: &str, time: SystemTime) {
        fs::File::options().write(true).open(self.at(name)).unwrap().set_modified(time).unwrap();
    }

    fn settings(&self) -> FilesSettings {
        FilesSettings::new(self.at("root"))
    }

    fn server(&self) -> Server {
        Server { files: Files::new(self.settings()).unwrap(), now: Instant::now() }
    }
}

struct Server {
    files: Files,
    now: Instant,
}

/// A response with its body.
struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    length: Option<u64>,
    body: Vec<u8>,
    from_memory: bool,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(field, _)| field == name);
        let value = found.next().map(|(_, value)| value.as_str());
        assert!(found.next().is_none(), "{name} twice");
        value
    }
    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

impl Server {
    fn ask(&mut self, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
        let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        let fields = FileFields::of(headers.iter().map(|(name, value)| (*name, value.as_bytes())));
        let response = self.files.respond(self.now, &FileRequest { method, path, query, fields });
        let headers =
            response.headers.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let mut body = Vec::new();
        let from_memory = matches!(response.body, FileBody::Memory { .. });
        match response.body {
            FileBody::Empty => {}
            FileBody::Memory { bytes, range } => body.extend_from_slice(&bytes[range]),
            FileBody::File(mut slice) => {
                let mut buffer = vec![0; 10_000];
                loop {
                    match slice.read(&mut buffer).unwrap() {
                        0 => break,
                        count => body.extend_from_slice(&buffer[..count]),
                    }
                }
            }
        }
        if let Some(length) = response.content_length
            && method != "HEAD"
        {
            assert_eq!(length, body.len() as u64);
        }
        Answer { status: response.status, headers, length: response.content_length, body, from_memory }
    }

    fn get(&mut self, path: &str) -> Answer {
        self.ask("GET", path, &[])
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
    }
}

fn large() -> Vec<u8> {
    (0..SMALL_FILE_BYTES + 5_000).map(|number| (number % 251) as u8).collect()
}
