//! Rules for address translation: nftables messages over netlink.
//!
//! Pure: from rules to the bytes of one batch, which the kernel applies as a whole or not at all.
//! Numbers are those of `linux/netfilter/nf_tables.h`, which no crate under a licence of ours has.

/// IPv4 as netfilter numbers families.
const IPV4: u8 = 2;
/// The part of netfilter that a message is for.
const NFTABLES: u16 = 10;

const BATCH_BEGIN: u16 = 16;
const BATCH_END: u16 = 17;
const NEW_TABLE: u16 = NFTABLES << 8;
const GET_TABLE: u16 = NFTABLES << 8 | 1;
const DELETE_TABLE: u16 = NFTABLES << 8 | 2;
const NEW_CHAIN: u16 = NFTABLES << 8 | 3;
const NEW_RULE: u16 = NFTABLES << 8 | 6;

const REQUEST: u16 = 0x001;
const ACKNOWLEDGE: u16 = 0x004;
const CREATE: u16 = 0x400;
const APPEND: u16 = 0x800;
const NESTED: u16 = 0x8000;

/// Where a chain sees packets, and in which order with others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hook {
    number: u32,
    priority: i32,
}

/// Packets that arrive.
pub(super) const ARRIVING: Hook = Hook {
    number: 0,
    priority: -100,
};
/// Packets of the machine itself.
pub(super) const OWN: Hook = Hook {
    number: 3,
    priority: -100,
};
/// Packets that leave.
pub(super) const LEAVING: Hook = Hook {
    number: 4,
    priority: 100,
};

/// Messages, one after the other, of one batch.
#[derive(Debug)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    /// How many of them are answered.
    pub(super) answers: u32,
}

/// The message that requests a table, and how many acknowledgements it gets: an error says that
/// there is no such table.
pub(super) fn look_up(table: &str) -> (Vec<u8>, u32) {
    let mut question = Batch::empty();
    question.change(GET_TABLE, 0, &text(1, table));
    (question.bytes, question.answers)
}

impl Batch {
    fn empty() -> Batch {
        Batch {
            bytes: Vec::new(),
            answers: 0,
        }
    }

    pub(super) fn new() -> Batch {
        let mut batch = Batch::empty();
        batch.message(BATCH_BEGIN, REQUEST, 0, NFTABLES, &[]);
        batch
    }

    /// The whole batch.
    pub(super) fn finish(mut self) -> (Vec<u8>, u32) {
        self.message(BATCH_END, REQUEST, 0, NFTABLES, &[]);
        (self.bytes, self.answers)
    }

    /// Makes a table, if it is not there.
    pub(super) fn table(&mut self, name: &str) {
        self.change(NEW_TABLE, CREATE, &text(1, name));
    }

    /// Deletes a table with all that is in it.
    pub(super) fn delete_table(&mut self, name: &str) {
        self.change(DELETE_TABLE, 0, &text(1, name));
    }

    /// Makes a chain; one that has no hook is jumped to.
    pub(super) fn chain(&mut self, table: &str, name: &str, hook: Option<Hook>) {
        let mut parts = [text(1, table), text(3, name)].concat();
        if let Some(hook) = hook {
            let place = [number(1, hook.number), signed(2, hook.priority)].concat();
            parts.extend(nested(4, &place));
            parts.extend(text(7, "nat"));
        }
        self.change(NEW_CHAIN, CREATE, &parts);
    }

    /// Adds a rule at the end of a chain.
    pub(super) fn rule(&mut self, table: &str, chain: &str, expressions: &[Vec<u8>]) {
        let list: Vec<u8> = expressions.iter().flat_map(|one| nested(1, one)).collect();
        let parts = [text(1, table), text(2, chain), nested(4, &list)].concat();
        self.change(NEW_RULE, CREATE | APPEND, &parts);
    }

    fn change(&mut self, kind: u16, flags: u16, attributes: &[u8]) {
        self.answers += 1;
        self.message(kind, REQUEST | ACKNOWLEDGE | flags, IPV4, 0, attributes);
    }

    fn message(&mut self, kind: u16, flags: u16, family: u8, resource: u16, attributes: &[u8]) {
        const HEADERS: usize = 16 + 4;
        let length = u32::try_from(HEADERS + attributes.len()).unwrap_or(u32::MAX);
        self.bytes.extend(length.to_ne_bytes());
        self.bytes.extend(kind.to_ne_bytes());
        self.bytes.extend(flags.to_ne_bytes());
        self.bytes.extend(self.answers.to_ne_bytes());
        self.bytes.extend(0_u32.to_ne_bytes());
        self.bytes.extend([family, 0]);
        self.bytes.extend(resource.to_be_bytes());
        self.bytes.extend(attributes);
    }
}

/// Something with a number and a length, padded to four bytes.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
    let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn nested(kind: u16, value: &[u8]) -> Vec<u8> {
    attribute(kind | NESTED, value)
}

fn text(kind: u16, value: &str) -> Vec<u8> {
    attribute(kind, &[value.as_bytes(), &[0]].concat())
}

fn number(kind: u16, value: u32) -> Vec<u8> {
    attribute(kind, &value.to_be_bytes())
}

fn signed(kind: u16, value: i32) -> Vec<u8> {
    attribute(kind, &value.to_be_bytes())
}

fn value(kind: u16, bytes: &[u8]) -> Vec<u8> {
    nested(kind, &attribute(1, bytes))
}

fn expression(name: &str, data: &[Vec<u8>]) -> Vec<u8> {
    [text(1, name), nested(2, &data.concat())].concat()
}

/// Where in a packet to look.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    /// The IPv4 address it comes from.
    Source,
    /// The IPv4 address it goes to.
    Destination,
    /// The port it goes to.
    Port,
}

/// Loads a part of the packet into a register.
pub(super) fn load(part: Part, register: u32) -> Vec<u8> {
    const NETWORK: u32 = 1;
    const TRANSPORT: u32 = 2;
    let (base, offset, length) = match part {
        Part::Source => (NETWORK, 12, 4),
        Part::Destination => (NETWORK, 16, 4),
        Part::Port => (TRANSPORT, 2, 2),
    };
    expression(
        "payload",
        &[
            number(1, register),
            number(2, base),
            number(3, offset),
            number(4, length),
        ],
    )
}

/// Keeps the bits of a register that a mask has.
pub(super) fn mask(register: u32, bits: [u8; 4]) -> Vec<u8> {
    expression(
        "bitwise",
        &[
            number(1, register),
            number(2, register),
            number(3, 4),
            value(4, &bits),
            value(5, &[0; 4]),
        ],
    )
}

/// Continues the rule only if a register has this value, or has not.
pub(super) fn compare(register: u32, is_equal: bool, bytes: &[u8]) -> Vec<u8> {
    let operation = u32::from(!is_equal);
    expression(
        "cmp",
        &[number(1, register), number(2, operation), value(3, bytes)],
    )
}

/// Loads the protocol within IPv4, a byte.
pub(super) fn load_protocol(register: u32) -> Vec<u8> {
    expression("meta", &[number(1, register), number(2, 16)])
}

/// Loads the kind of address that a packet goes to; [`LOCAL`] for the machine's own.
pub(super) fn load_destination_kind(register: u32) -> Vec<u8> {
    expression("fib", &[number(1, register), number(2, 3), number(3, 2)])
}

/// The machine's own addresses.
pub(super) const LOCAL: [u8; 4] = 2_u32.to_ne_bytes();

/// Loads what is known of a connection; [`REDIRECTED`] is a bit of it.
pub(super) fn load_connection_status(register: u32) -> Vec<u8> {
    expression("ct", &[number(1, register), number(2, 2)])
}

/// Connections with a translated destination.
pub(super) const REDIRECTED: [u8; 4] = 32_u32.to_ne_bytes();

/// Loads a constant.
pub(super) fn constant(register: u32, bytes: &[u8]) -> Vec<u8> {
    expression("immediate", &[number(1, register), value(2, bytes)])
}

/// Jumps to another chain, and returns.
pub(super) fn jump(chain: &str) -> Vec<u8> {
    const JUMP: i32 = -3;
    let verdict = nested(2, &[signed(1, JUMP), text(2, chain)].concat());
    expression("immediate", &[number(1, 0), nested(2, &verdict)])
}

/// Sends a connection elsewhere: to the address in one register, the port in another.
pub(super) fn redirect(address: u32, port: u32) -> Vec<u8> {
    const DESTINATION: u32 = 1;
    expression(
        "nat",
        &[
            number(1, DESTINATION),
            number(2, u32::from(IPV4)),
            number(3, address),
            number(5, port),
        ],
    )
}

/// Lets a connection come from the machine's own address.
pub(super) fn masquerade() -> Vec<u8> {
    expression("masq", &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_padded_and_their_length_excludes_the_padding() {
        assert_eq!(text(1, "ab"), [7, 0, 1, 0, b'a', b'b', 0, 0]);
        assert_eq!(number(2, 7), [8, 0, 2, 0, 0, 0, 0, 7]);
        assert_eq!(nested(3, &[1, 2, 3, 4])[..4], [8, 0, 3, 0x80]);
    }

    #[test]
    fn a_batch_is_framed_and_each_change_is_answered() {
        let mut batch = Batch::new();
        batch.table("t");
        batch.chain("t", "c", Some(LEAVING));
        let (bytes, answers) = batch.finish();
        assert_eq!(answers, 2);
        let kind = |at: usize| u16::from_ne_bytes([bytes[at + 4], bytes[at + 5]]);
        let next = |at: usize| {
            let length = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
            at + u32::from_ne_bytes(length) as usize
        };
        let mut kinds = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            kinds.push(kind(at));
            at = next(at);
        }
        assert_eq!(at, bytes.len());
        assert_eq!(kinds, [BATCH_BEGIN, NEW_TABLE, NEW_CHAIN, BATCH_END]);
    }
}
