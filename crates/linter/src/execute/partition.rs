//! ATTACH and DETACH PARTITION.

use super::{Executor, Run};
use crate::ast::{ObjectName, PartitionBound};
use crate::catalog::Oid;
use crate::source::TextRange;

impl Executor<'_> {
    pub(crate) fn attach_partition(
        &mut self,
        parent: Oid,
        partition: &ObjectName,
        bound: Option<&PartitionBound>,
        range: TextRange,
    ) -> Run {
        let _ = (parent, partition, bound, range);
        Ok(())
    }

    pub(crate) fn detach_partition(
        &mut self,
        parent: Oid,
        partition: &ObjectName,
        concurrently: bool,
        finalize: bool,
        range: TextRange,
    ) -> Run {
        let _ = (parent, partition, concurrently, finalize, range);
        Ok(())
    }

    pub(crate) fn attach_index(&mut self, parent: Oid, index: &ObjectName) -> Run {
        let _ = (parent, index);
        Ok(())
    }
}
