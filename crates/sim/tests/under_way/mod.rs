//! What a watcher knows of the requests under way. A request is found by the lower half of its token, a small number that the
//! simulation gives again to another request once this one has ended.

use plimsoll_core::request::Token;

/// Something known of each request under way.
pub(crate) struct UnderWay<T>(Vec<Option<(Token, T)>>);

impl<T> Default for UnderWay<T> {
    fn default() -> Self {
        UnderWay(Vec::new())
    }
}

impl<T> UnderWay<T> {
    pub(crate) fn insert(&mut self, token: Token, known: T) {
        let place = place(token);
        if place >= self.0.len() {
            self.0.resize_with(place + 1, || None);
        }
        self.0[place] = Some((token, known));
    }

    pub(crate) fn get_mut(&mut self, token: Token) -> Option<&mut T> {
        let known = self.0.get_mut(place(token))?.as_mut();
        known.filter(|(own, _)| *own == token).map(|(_, known)| known)
    }

    pub(crate) fn remove(&mut self, token: Token) -> Option<T> {
        let place = self.0.get_mut(place(token))?;
        let known = place.take_if(|(own, _)| *own == token);
        known.map(|(_, known)| known)
    }
}

fn place(token: Token) -> usize {
    token.0 as u32 as usize
}
