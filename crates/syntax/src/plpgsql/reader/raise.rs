//! RAISE and ASSERT.

use super::{Read, Reader};
use crate::plpgsql::{Assert, Raise, RaiseLevel, RaiseMessage, RaiseOption};

impl Reader<'_> {
    /// After the keyword.
    pub(super) fn raise(&mut self) -> Read<Raise> {
        if self.is_symbol(0, ";") {
            let level = RaiseLevel::default();
            return Ok(Raise { level, message: RaiseMessage::Rethrow, options: Vec::new() });
        }
        let level = self.raise_level();
        let message = if self.is_string(0) {
            let format = self.take_range();
            let arguments = if self.accept_symbol(",") { self.list_until(&["USING", ";"])? } else { Vec::new() };
            RaiseMessage::Format { format, arguments }
        } else if self.is_keyword(0, "USING") {
            RaiseMessage::None
        } else {
            RaiseMessage::Condition(self.condition()?)
        };
        let options = if self.accept("USING").is_some() { self.raise_options()? } else { Vec::new() };
        Ok(Raise { level, message, options })
    }

    fn raise_level(&mut self) -> RaiseLevel {
        let levels = [
            ("EXCEPTION", RaiseLevel::Exception),
            ("WARNING", RaiseLevel::Warning),
            ("NOTICE", RaiseLevel::Notice),
            ("INFO", RaiseLevel::Info),
            ("LOG", RaiseLevel::Log),
            ("DEBUG", RaiseLevel::Debug),
        ];
        let found = levels.into_iter().find(|(keyword, _)| self.accept(keyword).is_some());
        found.map_or(RaiseLevel::default(), |(_, level)| level)
    }

    fn raise_options(&mut self) -> Read<Vec<RaiseOption>> {
        let mut options = Vec::new();
        loop {
            let name = self.name("an option of RAISE")?;
            if !self.accept_symbol("=") {
                self.expect_symbol(":=")?;
            }
            options.push(RaiseOption { name, value: self.sql_until(&[",", ";"])? });
            if !self.accept_symbol(",") {
                return Ok(options);
            }
        }
    }

    /// After the keyword.
    pub(super) fn assert(&mut self) -> Read<Assert> {
        let condition = self.sql_until(&[",", ";"])?;
        let message = if self.accept_symbol(",") { Some(self.sql_until(&[";"])?) } else { None };
        Ok(Assert { condition, message })
    }
}
