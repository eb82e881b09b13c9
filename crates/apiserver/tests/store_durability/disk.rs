//! An in-memory disk that can fail, fill up and lose power.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use redb::StorageBackend;

/// The unit that is written or lost as a whole.
const SECTOR: usize = 512;

/// The unit of space.
const BLOCK: u64 = 4096;

/// The fault to inject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Write,
    Flush,
    Read,
}

/// Which of the following operations fail.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) operation: Operation,
    /// The first that fails, counting from one.
    pub(crate) at: u64,
    /// How many fail in a row.
    pub(crate) times: u64,
}

#[derive(Debug, Default)]
struct Inner {
    /// The content that reads see.
    content: Vec<u8>,
    /// The content that survives a power loss for certain.
    durable: Vec<u8>,
    /// The operations since the last flush.
    pending: Vec<Pending>,
    fault: Option<Fault>,
    has_failed: bool,
    capacity_blocks: Option<usize>,
    blocks: BTreeSet<u64>,
    /// Operations until the power fails.
    power_lasts: Option<u64>,
    /// Handles from before a power loss are dead.
    generation: u64,
}

#[derive(Debug)]
enum Pending {
    SetLen(usize),
    Write(usize, Vec<u8>),
}

impl Pending {
    fn apply(&self, content: &mut Vec<u8>, survives: impl FnMut() -> bool) {
        let mut survives = survives;
        match self {
            Self::SetLen(len) => {
                if survives() {
                    content.resize(*len, 0);
                }
            }
            Self::Write(offset, data) => {
                for (at, sector) in data.chunks(SECTOR).enumerate() {
                    let start = offset + at * SECTOR;
                    let end = start + sector.len();
                    if survives() && end <= content.len() {
                        content[start..end].copy_from_slice(sector);
                    }
                }
            }
        }
    }
}

/// The disk; clones are the same disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk {
    inner: Arc<Mutex<Inner>>,
}

impl Disk {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    /// A disk with this durable content.
    pub(crate) fn with(content: Vec<u8>) -> Self {
        let disk = Self::default();
        {
            let mut inner = disk.lock();
            let blocks = u64::try_from(content.len()).unwrap().div_ceil(BLOCK);
            inner.blocks = (0..blocks).collect();
            inner.durable.clone_from(&content);
            inner.content = content;
        }
        disk
    }

    /// The content that reads see.
    pub(crate) fn content(&self) -> Vec<u8> {
        self.lock().content.clone()
    }

    /// Changes one bit of what reads see, and of what survives.
    pub(crate) fn flip(&self, at: usize, bit: u8) {
        let mut inner = self.lock();
        inner.content[at] ^= 1 << bit;
        if let Some(byte) = inner.durable.get_mut(at) {
            *byte ^= 1 << bit;
        }
    }

    /// A handle for a database.
    pub(crate) fn open(&self) -> Box<dyn StorageBackend> {
        let generation = self.lock().generation;
        Box::new(Handle {
            disk: self.clone(),
            generation,
        })
    }

    pub(crate) fn fail(&self, fault: Fault) {
        self.lock().fault = Some(fault);
    }

    /// Ends the fault; returns whether it occurred.
    pub(crate) fn mend(&self) -> bool {
        let mut inner = self.lock();
        inner.fault = None;
        std::mem::take(&mut inner.has_failed)
    }

    /// Allows this many further bytes to be written to unused places.
    pub(crate) fn limit_space(&self, further: Option<u64>) {
        let mut inner = self.lock();
        let used = inner.blocks.len();
        inner.capacity_blocks = further.map(|bytes| used + usize::try_from(bytes / BLOCK).unwrap());
    }

    /// Cuts the power after this many operations.
    pub(crate) fn cut_power_after(&self, operations: u64) {
        self.lock().power_lasts = Some(operations);
    }

    pub(crate) fn has_power(&self) -> bool {
        self.lock().power_lasts != Some(0)
    }

    /// Starts the machine again: any part of the unflushed data may have reached the disk.
    pub(crate) fn restart(&self, rng: &mut fastrand::Rng) {
        let mut inner = self.lock();
        let mut content = std::mem::take(&mut inner.durable);
        // Sometimes all, sometimes nothing, mostly something in between.
        let part = rng.f64() * 1.2 - 0.1;
        for pending in std::mem::take(&mut inner.pending) {
            pending.apply(&mut content, || rng.f64() < part);
        }
        inner.durable.clone_from(&content);
        inner.content = content;
        inner.power_lasts = None;
        inner.fault = None;
        inner.generation += 1;
    }
}

#[derive(Debug)]
struct Handle {
    disk: Disk,
    generation: u64,
}

impl Handle {
    /// The disk, if it has power and does not fail now.
    fn operate(&self, operation: Option<Operation>) -> io::Result<MutexGuard<'_, Inner>> {
        let mut inner = self.disk.lock();
        if inner.generation != self.generation || inner.power_lasts == Some(0) {
            return Err(io::Error::other("no power"));
        }
        if let Some(lasts) = &mut inner.power_lasts {
            *lasts -= 1;
        }
        match &mut inner.fault {
            Some(fault) if Some(fault.operation) == operation => {
                if fault.at > 1 {
                    fault.at -= 1;
                    return Ok(inner);
                }
                fault.times -= 1;
                if fault.times == 0 {
                    inner.fault = None;
                }
                inner.has_failed = true;
                Err(io::Error::other("injected fault"))
            }
            _ => Ok(inner),
        }
    }
}

fn position(offset: u64) -> usize {
    usize::try_from(offset).unwrap()
}

impl StorageBackend for Handle {
    fn len(&self) -> io::Result<u64> {
        let inner = self.operate(None)?;
        Ok(u64::try_from(inner.content.len()).unwrap())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let inner = self.operate(Some(Operation::Read))?;
        let start = position(offset);
        let content = inner.content.get(start..start + out.len());
        out.copy_from_slice(content.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut inner = self.operate(Some(Operation::Write))?;
        inner.content.resize(position(len), 0);
        inner.pending.push(Pending::SetLen(position(len)));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut inner = self.operate(Some(Operation::Flush))?;
        let mut durable = std::mem::take(&mut inner.durable);
        for pending in std::mem::take(&mut inner.pending) {
            pending.apply(&mut durable, || true);
        }
        inner.durable = durable;
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut inner = self.operate(Some(Operation::Write))?;
        let end = offset + u64::try_from(data.len()).unwrap();
        for block in offset / BLOCK..end.div_ceil(BLOCK) {
            let is_new = !inner.blocks.contains(&block);
            if is_new
                && inner
                    .capacity_blocks
                    .is_some_and(|limit| inner.blocks.len() >= limit)
            {
                return Err(io::ErrorKind::StorageFull.into());
            }
            inner.blocks.insert(block);
        }
        let start = position(offset);
        inner.content[start..start + data.len()].copy_from_slice(data);
        inner.pending.push(Pending::Write(start, data.to_vec()));
        Ok(())
    }
}
