//! A private server that stays for the next run.

use super::{Answer, CloneProvider, Scratch, ServerInfo, ThinClone};
use crate::roles::Roles;

/// A scratch server that many runs use, each as if nothing had been there. It stops with this value.
pub struct Lasting {
    scratch: Scratch,
    server: Option<ServerInfo>,
    /// The roles of the new server.
    roles: Option<Roles>,
    clones: Vec<ThinClone>,
    /// The last clone of this run, which may be gone: the server is asked for its roles beside it.
    last: Option<ThinClone>,
}

impl Lasting {
    pub fn new(scratch: Scratch) -> Self {
        Self { scratch, server: None, roles: None, clones: Vec::new(), last: None }
    }
}

impl CloneProvider for Lasting {
    fn name(&self) -> &'static str {
        "lasting"
    }

    fn prepare(&mut self) -> Answer<'_, ServerInfo> {
        Box::pin(async {
            let server = match self.server.take() {
                Some(server) => server,
                None => self.scratch.prepare().await?,
            };
            Ok(self.server.insert(server).clone())
        })
    }

    fn create(&mut self) -> Answer<'_, ThinClone> {
        Box::pin(async {
            let clone = self.scratch.create().await?;
            if self.roles.is_none() {
                self.roles = Some(Roles::of(&clone.observer).await?);
            }
            self.clones.push(clone.clone());
            self.last = Some(clone.clone());
            Ok(clone)
        })
    }

    fn trouble(&mut self) -> Option<String> {
        self.scratch.trouble()
    }

    fn discard(&mut self, clone: ThinClone) -> Answer<'_, ()> {
        self.clones.retain(|known| known.database.database_name() != clone.database.database_name());
        self.scratch.discard(clone)
    }

    /// Removes what the run has left; the server goes on.
    fn destroy(&mut self) -> Answer<'_, ()> {
        Box::pin(async {
            for clone in std::mem::take(&mut self.clones) {
                self.scratch.discard(clone).await?;
            }
            match (&self.roles, self.last.take()) {
                (Some(roles), Some(clone)) => roles.restore(&clone.observer).await,
                _ => Ok(()),
            }
        })
    }
}
