//! Directives as configuration files have them: words, with a `;` between two directives.

use super::super::form::duration;
use plimsoll_core::time::Duration;

/// The directives that follow a product's name.
pub(in crate::front) struct Directives<'a>(Vec<Directive<'a>>);

/// A directive's words. Each word is taken once; a word that is left is an error.
pub(super) struct Directive<'a> {
    words: Vec<&'a str>,
}

impl<'a> Directives<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let all = text.split(';').map(|part| Directive { words: part.split_whitespace().collect() });
        Directives(all.filter(|directive| !directive.words.is_empty()).collect())
    }

    /// Reads each directive with `read`, which gets its name and the words after it. `written` says how directives are written.
    pub(super) fn each(
        self,
        written: &str,
        mut read: impl FnMut(&str, &mut Directive<'a>) -> Result<(), String>,
    ) -> Result<(), String> {
        let wrong = |what: String| format!("{what}; it is written {written}");
        if self.0.is_empty() {
            return Err(wrong("there is no directive".to_owned()));
        }
        for mut directive in self.0 {
            let name = directive.words.remove(0);
            read(name, &mut directive).map_err(wrong)?;
            if let Some(word) = directive.words.first() {
                return Err(wrong(format!("{name}: \"{word}\" is not understood, or written twice")));
            }
        }
        Ok(())
    }
}

impl<'a> Directive<'a> {
    /// The next word, which is required.
    pub(super) fn word(&mut self, what: &str) -> Result<&'a str, String> {
        if self.words.is_empty() { Err(format!("{what} is missing")) } else { Ok(self.words.remove(0)) }
    }

    /// The next word as a whole number above 0.
    pub(super) fn count(&mut self, what: &str) -> Result<u32, String> {
        number(self.word(what)?)
    }

    /// Whether this word is among the words that are left.
    pub(super) fn flag(&mut self, word: &str) -> bool {
        let place = self.words.iter().position(|own| *own == word);
        place.map(|place| self.words.remove(place)).is_some()
    }

    /// The value of `key=value`, if such a word is left.
    pub(super) fn value(&mut self, key: &str) -> Option<&'a str> {
        let of = |word: &&'a str| word.strip_prefix(key).and_then(|rest| rest.strip_prefix('='));
        let place = self.words.iter().position(|word| of(word).is_some())?;
        of(&self.words.remove(place))
    }
}

/// Sets what a directive says that may be written once.
pub(super) fn once<T>(place: &mut Option<T>, value: T, name: &str) -> Result<(), String> {
    place.replace(value).map_or(Ok(()), |_| Err(format!("{name} is written twice")))
}

/// A whole number above 0.
pub(super) fn number(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| format!("\"{text}\" is not a whole number above 0"))
}

/// A share in percent, such as `95` or `95%`.
pub(super) fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').parse().ok().filter(|share| (0.0..=100.0).contains(share));
    number.map(|share: f64| share / 100.0).ok_or_else(|| format!("\"{text}\" is no share from 0 to 100"))
}

/// A time above 0; a number alone has this unit.
pub(super) fn time(text: &str, unit: &str) -> Result<Duration, String> {
    let with_unit = if text.bytes().all(|byte| byte.is_ascii_digit()) {
        format!("{text}{unit}")
    } else {
        // The products write `m` for minutes.
        text.strip_suffix('m').map_or_else(|| text.to_owned(), |minutes| format!("{minutes}min"))
    };
    let time = duration(&with_unit).filter(|time| !time.is_zero());
    time.ok_or_else(|| format!("\"{text}\" is not a time above 0 such as 500ms or 2s"))
}
