//! The fields of a message, in order.

use super::DecodeError;

/// The contents of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Payload<'a> {
    /// A whole number or a boolean.
    Varint(u64),
    /// Eight bytes: a float.
    Fixed64(u64),
    /// Four bytes; no field of the API has this form.
    Fixed32,
    /// A text, bytes, a message, or numbers in a row.
    Bytes(&'a [u8]),
}

impl Payload<'_> {
    /// The number of this form on the wire.
    pub(super) fn wire_type(&self) -> u8 {
        match self {
            Payload::Varint(_) => 0,
            Payload::Fixed64(_) => 1,
            Payload::Bytes(_) => 2,
            Payload::Fixed32 => 5,
        }
    }
}

/// Reads a message field by field.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

const START_GROUP: u8 = 3;
const END_GROUP: u8 = 4;

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    /// The next field, or `None` at the end. Groups, which no client sends, are skipped.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Payload<'a>)>, DecodeError> {
        let mut open_groups = 0_usize;
        while !self.rest.is_empty() {
            let tag = self.varint()?;
            let (number, wire_type) = (tag >> 3, (tag & 7) as u8);
            if number == 0 || number > u64::from(u32::MAX >> 3) {
                return Err(DecodeError::IllegalTag { number, wire_type });
            }
            match wire_type {
                START_GROUP => open_groups += 1,
                END_GROUP if open_groups == 0 => return Err(DecodeError::UnexpectedEndOfGroup),
                END_GROUP => open_groups -= 1,
                _ => {
                    let payload = self.payload(wire_type)?;
                    if open_groups == 0 {
                        return Ok(Some((number, payload)));
                    }
                }
            }
        }
        if open_groups == 0 {
            Ok(None)
        } else {
            Err(DecodeError::UnexpectedEnd)
        }
    }

    fn payload(&mut self, wire_type: u8) -> Result<Payload<'a>, DecodeError> {
        match wire_type {
            0 => self.varint().map(Payload::Varint),
            1 => {
                let bytes = self.take(8)?;
                let bytes = bytes.try_into().expect("eight bytes were taken");
                Ok(Payload::Fixed64(u64::from_le_bytes(bytes)))
            }
            2 => {
                let length = self.varint()?;
                let length = usize::try_from(length).map_err(|_| DecodeError::UnexpectedEnd)?;
                self.take(length).map(Payload::Bytes)
            }
            5 => self.take(4).map(|_| Payload::Fixed32),
            _ => Err(DecodeError::IllegalWireType { wire_type }),
        }
    }

    /// A number in groups of seven bits, the lowest first.
    pub(super) fn varint(&mut self) -> Result<u64, DecodeError> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.take(1)? else {
                return Err(DecodeError::UnexpectedEnd);
            };
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(DecodeError::Overflow)
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let split = self.rest.split_at_checked(length);
        let (taken, rest) = split.ok_or(DecodeError::UnexpectedEnd)?;
        self.rest = rest;
        Ok(taken)
    }
}
