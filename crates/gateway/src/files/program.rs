//! Programs among the files of a tree. They lie there for a server that runs them; sent as files they would show their source,
//! with any passwords in it. A stored page that has a program's name is a page, and is sent.

/// Endings of the names of programs that make pages.
const ENDINGS: &str = "asp aspx cgi fcgi jsp jspx php php3 php4 php5 php7 php8 phtml pl";
/// The beginnings of files that are programs, in any language.
const BEGINNINGS: [&[u8]; 4] = [b"<?", b"<%", b"#!", b"\x7fELF"];
/// Marks at which a server inserts what it computes; browsers know none of them.
const INSIDE: [&[u8]; 3] = [b"<?php", b"<?=", b"<%@"];
/// How much of a file is searched (byte).
const SEARCHED: usize = 64 * 1024;

/// Whether a file of a tree is the source of a program, by its name and, if the name is a program's, by its `content`.
pub fn is_program(name: &[u8], content: impl FnOnce() -> Vec<u8>) -> bool {
    let ending = name.iter().rposition(|&byte| byte == b'.').map_or(&b""[..], |dot| &name[dot + 1..]);
    if !ENDINGS.split(' ').any(|one| one.as_bytes().eq_ignore_ascii_case(ending)) {
        return false;
    }
    let content = content();
    let content = &content[..content.len().min(SEARCHED)];
    let text = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content).trim_ascii_start();
    let is_xml = text.get(..5).is_some_and(|mark| mark.eq_ignore_ascii_case(b"<?xml"));
    let has = |mark: &&[u8]| content.windows(mark.len()).any(|part| part.eq_ignore_ascii_case(mark));
    !is_xml && BEGINNINGS.iter().any(|mark| text.starts_with(mark)) || INSIDE.iter().any(has)
}
