//! Tests over whole bodies.

mod same_structure;
mod statements;

use super::{Body, BodyText, read};
use crate::source::TextRange;

fn read_text(text: &str) -> Body {
    read(&BodyText::verbatim(text, TextRange::new(0, text.len() as u32)))
}
