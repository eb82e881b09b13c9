//! `$((…))`: C's integer expressions on 64 bits, which wrap around, with variables.

use super::lexer::{is_name_byte, is_name_start};
use crate::numbers::number;
use crate::outcome::shown;

/// How deep parentheses and signs may be nested.
const MAX_DEPTH: usize = 100;

/// Where variables live.
pub(super) trait Scope {
    /// The value of a variable as a number.
    fn get(&mut self, name: &[u8]) -> Result<i64, String>;
    fn set(&mut self, name: &[u8], value: i64) -> Result<(), String>;
}

pub(super) fn evaluate(text: &[u8], scope: &mut dyn Scope) -> Result<i64, String> {
    let mut reader = Reader {
        text,
        at: 0,
        depth: 0,
        is_skipping: false,
        scope,
    };
    reader.blanks();
    if reader.at == text.len() {
        return Ok(0);
    }
    let value = reader.comma()?;
    if reader.at < text.len() {
        return Err(reader.bad());
    }
    Ok(value)
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    depth: usize,
    /// In the branch that is not taken: read, but without effects and without errors of division.
    is_skipping: bool,
    scope: &'a mut dyn Scope,
}

/// Binary operators from the loosest to the tightest.
const LEVELS: [&[&str]; 8] = [
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<=", ">=", "<", ">"],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

const ASSIGNMENTS: [&str; 11] = [
    "<<=", ">>=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "=",
];

impl Reader<'_> {
    fn blanks(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn bad(&self) -> String {
        format!("arithmetic: bad expression \"{}\"", shown(self.text))
    }

    fn starts_with(&self, text: &str) -> bool {
        let rest = self.text.get(self.at..).unwrap_or_default();
        rest.starts_with(text.as_bytes())
    }

    fn take(&mut self, text: &str) -> bool {
        let is_next = self.starts_with(text);
        if is_next {
            self.at += text.len();
            self.blanks();
        }
        is_next
    }

    /// Takes a binary operator, but not the beginning of a longer one.
    fn take_operator(&mut self, operators: &[&'static str]) -> Option<&'static str> {
        let operator = operators.iter().find(|text| self.starts_with(text))?;
        let after = self.text.get(self.at + operator.len());
        let is_longer = match *operator {
            "|" | "&" => after == operator.as_bytes().first() || after == Some(&b'='),
            "<" | ">" => after == operator.as_bytes().first(),
            "==" | "!=" | "<=" | ">=" => false,
            _ => after == Some(&b'='),
        };
        if is_longer {
            return None;
        }
        self.take(operator);
        Some(operator)
    }

    fn comma(&mut self) -> Result<i64, String> {
        let mut value = self.assignment()?;
        while self.take(",") {
            value = self.assignment()?;
        }
        Ok(value)
    }

    fn nested(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<i64, String>,
    ) -> Result<i64, String> {
        if self.depth >= MAX_DEPTH {
            return Err(format!(
                "arithmetic: nested more than {MAX_DEPTH} levels deep"
            ));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    fn assignment(&mut self) -> Result<i64, String> {
        let start = self.at;
        if let Some(name) = self.name() {
            let operator = ASSIGNMENTS.iter().find(|text| self.starts_with(text));
            if let Some(operator) = operator.filter(|_| !self.starts_with("==")) {
                self.take(operator);
                let right = self.nested(Self::assignment)?;
                let value = match operator.strip_suffix('=') {
                    None | Some("") => right,
                    Some(operator) => {
                        let left = self.variable(&name)?;
                        self.apply(operator, left, right)?
                    }
                };
                return self.assign(&name, value);
            }
        }
        self.at = start;
        self.choice()
    }

    fn assign(&mut self, name: &[u8], value: i64) -> Result<i64, String> {
        if !self.is_skipping {
            self.scope.set(name, value)?;
        }
        Ok(value)
    }

    fn variable(&mut self, name: &[u8]) -> Result<i64, String> {
        if self.is_skipping {
            return Ok(0);
        }
        self.scope.get(name)
    }

    fn skipping(
        &mut self,
        is_skipping: bool,
        read: impl FnOnce(&mut Self) -> Result<i64, String>,
    ) -> Result<i64, String> {
        let before = self.is_skipping;
        self.is_skipping |= is_skipping;
        let result = read(self);
        self.is_skipping = before;
        result
    }

    fn choice(&mut self) -> Result<i64, String> {
        let condition = self.or()?;
        if !self.take("?") {
            return Ok(condition);
        }
        let is_true = condition != 0;
        let first = self.skipping(!is_true, |reader| reader.nested(Self::assignment))?;
        if !self.take(":") {
            return Err(self.bad());
        }
        let second = self.skipping(is_true, |reader| reader.nested(Self::choice))?;
        Ok(if is_true { first } else { second })
    }

    fn or(&mut self) -> Result<i64, String> {
        let mut value = self.and()?;
        while self.take("||") {
            let right = self.skipping(value != 0, Self::and)?;
            value = i64::from(value != 0 || right != 0);
        }
        Ok(value)
    }

    fn and(&mut self) -> Result<i64, String> {
        let mut value = self.binary(0)?;
        while self.take("&&") {
            let right = self.skipping(value == 0, |reader| reader.binary(0))?;
            value = i64::from(value != 0 && right != 0);
        }
        Ok(value)
    }

    fn binary(&mut self, level: usize) -> Result<i64, String> {
        let Some(operators) = LEVELS.get(level) else {
            return self.unary();
        };
        let mut value = self.binary(level + 1)?;
        while let Some(operator) = self.take_operator(operators) {
            let right = self.binary(level + 1)?;
            value = self.apply(operator, value, right)?;
        }
        Ok(value)
    }

    fn apply(&self, operator: &str, left: i64, right: i64) -> Result<i64, String> {
        let distance = u32::try_from(right & 63).unwrap_or_default();
        Ok(match operator {
            "|" => left | right,
            "^" => left ^ right,
            "&" => left & right,
            "==" => i64::from(left == right),
            "!=" => i64::from(left != right),
            "<=" => i64::from(left <= right),
            ">=" => i64::from(left >= right),
            "<" => i64::from(left < right),
            ">" => i64::from(left > right),
            "<<" => left.wrapping_shl(distance),
            ">>" => left.wrapping_shr(distance),
            "+" => left.wrapping_add(right),
            "-" => left.wrapping_sub(right),
            "*" => left.wrapping_mul(right),
            _ if right == 0 && self.is_skipping => 0,
            _ if right == 0 => return Err("arithmetic: division by zero".to_owned()),
            "/" => left.wrapping_div(right),
            _ => left.wrapping_rem(right),
        })
    }

    fn unary(&mut self) -> Result<i64, String> {
        for (sign, step) in [("++", 1), ("--", -1)] {
            let start = self.at;
            if self.take(sign) {
                if let Some(name) = self.name() {
                    let value = self.variable(&name)?.wrapping_add(step);
                    return self.assign(&name, value);
                }
                // Two signs, as in `--1`.
                self.at = start;
            }
        }
        let Some(byte) = self.text.get(self.at).copied() else {
            return Err(self.bad());
        };
        if !matches!(byte, b'+' | b'-' | b'!' | b'~') {
            return self.primary();
        }
        self.at += 1;
        self.blanks();
        let value = self.nested(Self::unary)?;
        Ok(match byte {
            b'-' => value.wrapping_neg(),
            b'!' => i64::from(value == 0),
            b'~' => !value,
            _ => value,
        })
    }

    fn primary(&mut self) -> Result<i64, String> {
        if self.take("(") {
            let value = self.nested(Self::comma)?;
            if !self.take(")") {
                return Err(self.bad());
            }
            return Ok(value);
        }
        if let Some(name) = self.name() {
            let value = self.variable(&name)?;
            for (sign, step) in [("++", 1), ("--", -1)] {
                if self.take(sign) {
                    self.assign(&name, value.wrapping_add(step))?;
                    break;
                }
            }
            return Ok(value);
        }
        let rest = self.text.get(self.at..).unwrap_or_default();
        let length = rest.iter().take_while(|byte| is_name_byte(**byte)).count();
        let value = number(rest.get(..length).unwrap_or_default()).ok_or_else(|| self.bad())?;
        self.at += length;
        self.blanks();
        Ok(value)
    }

    fn name(&mut self) -> Option<Vec<u8>> {
        let rest = self.text.get(self.at..)?;
        if !rest.first().copied().is_some_and(is_name_start) {
            return None;
        }
        let length = rest.iter().take_while(|byte| is_name_byte(**byte)).count();
        self.at += length;
        self.blanks();
        rest.get(..length).map(<[u8]>::to_vec)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[derive(Default)]
    struct Variables(BTreeMap<Vec<u8>, i64>);

    impl Scope for Variables {
        fn get(&mut self, name: &[u8]) -> Result<i64, String> {
            Ok(self.0.get(name).copied().unwrap_or_default())
        }

        fn set(&mut self, name: &[u8], value: i64) -> Result<(), String> {
            self.0.insert(name.to_vec(), value);
            Ok(())
        }
    }

    #[test]
    fn computes_as_c_does() {
        for (text, expected) in [
            ("", 0),
            ("1 + 2 * 3", 7),
            ("(1 + 2) * 3", 9),
            ("7 % 4 - -1", 4),
            ("0x1f + 010", 39),
            ("1 << 4 | 1", 17),
            ("3 > 2 && 2 >= 2", 1),
            ("0 || 0", 0),
            ("1 ? 2 : 1 / 0", 2),
            ("!5 + ~0", -1),
            ("x = 5, x += 2, x++ + x", 15),
            ("--y", -1),
            ("- -3", 3),
            ("9223372036854775807 + 1", i64::MIN),
            ("-9223372036854775807 - 1 == 1 << 63", 1),
            ("1 != 2", 1),
            ("5 & 3 ^ 1", 0),
        ] {
            assert_eq!(
                evaluate(text.as_bytes(), &mut Variables::default()),
                Ok(expected),
                "{text}"
            );
        }
    }

    #[test]
    fn wrong_expressions_are_errors() {
        for text in [
            "1 +", "(1", "1 2", "1 / 0", "5 % 0", "08", "1 ? 2", "= 3", "&&", "0x",
        ] {
            assert!(
                evaluate(text.as_bytes(), &mut Variables::default()).is_err(),
                "{text}"
            );
        }
        let deep = "(".repeat(100_000);
        assert!(evaluate(deep.as_bytes(), &mut Variables::default()).is_err());
        let extreme = "(1 << 63) / -1";
        assert_eq!(
            evaluate(extreme.as_bytes(), &mut Variables::default()),
            Ok(i64::MIN)
        );
    }
}
