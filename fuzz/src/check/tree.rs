use std::fmt::{Error, Write};

/// Every field of every node is read where the C parser left it; a wrong cast reads what the sanitizer forbids.
pub fn tree(text: &str) {
    struct Nowhere(usize);
    impl Write for Nowhere {
        fn write_str(&mut self, text: &str) -> Result<(), Error> {
            self.0 += text.len();
            Ok(())
        }
    }
    let read = pgvet_parser::parse(text, |statements| {
        let mut out = Nowhere(0);
        statements.iter().try_for_each(|statement| write!(out, "{statement:?}")).map(|()| out.0)
    });
    match read {
        Ok(written) => assert!(written.is_ok()),
        Err(error) => assert!(error.offset <= text.len() && !error.message.is_empty(), "{error:?}"),
    }
}
