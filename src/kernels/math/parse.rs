//! Parser of expressions: precedence climbing, which emits the instructions in the order of evaluation.

use std::f64::consts::PI;

use super::expression::{Binary, Expression, Instruction, Unary};
use crate::util::error::{Error, Result};

/// Maximum depth of nested parentheses, functions and operators.
const LEVELS: usize = 100;

/// Operators and punctuation. Those of two characters come first.
const SYMBOLS: [&str; 19] = [
    "<=", ">=", "==", "!=", "&&", "||", "**", "+", "-", "*", "/", "%", "^", "<", ">", "!", "(",
    ")", ",",
];

/// Names of numbers.
const CONSTANTS: [(&str, f64); 3] = [("pi", PI), ("inf", f64::INFINITY), ("nan", f64::NAN)];

/// Functions of one argument.
const UNARY: [(&str, Unary); 7] = [
    ("abs", Unary::Abs),
    ("sqrt", Unary::Sqrt),
    ("exp", Unary::Exp),
    ("log", Unary::Log),
    ("floor", Unary::Floor),
    ("ceil", Unary::Ceil),
    ("round", Unary::Round),
];

/// Functions of several arguments.
const FUNCTIONS: [&str; 4] = ["min", "max", "clamp", "where"];

/// Precedence of `not`, of comparisons and of the negative sign. Operators of higher precedence bind more tightly.
const NOT: u8 = 5;
const COMPARISON: u8 = 7;
const SIGN: u8 = 13;

/// The precedence of a binary operator, that of its right operand, and its instruction.
fn binary(symbol: &str) -> Option<(u8, u8, Binary)> {
    Some(match symbol {
        "or" | "||" => (1, 2, Binary::Or),
        "and" | "&&" => (3, 4, Binary::And),
        "<" => (COMPARISON, 8, Binary::Less),
        "<=" => (COMPARISON, 8, Binary::LessOrEqual),
        ">" => (COMPARISON, 8, Binary::Greater),
        ">=" => (COMPARISON, 8, Binary::GreaterOrEqual),
        "==" => (COMPARISON, 8, Binary::Equal),
        "!=" => (COMPARISON, 8, Binary::NotEqual),
        "+" => (9, 10, Binary::Add),
        "-" => (9, 10, Binary::Subtract),
        "*" => (11, 12, Binary::Multiply),
        "/" => (11, 12, Binary::Divide),
        "%" => (11, 12, Binary::Remainder),
        // From right to left: 2^3^2 is 2^9.
        "^" | "**" => (16, 15, Binary::Power),
        _ => return None,
    })
}

/// Whether `name` is a function, a constant or an operator.
pub fn is_reserved(name: &str) -> bool {
    let constant = CONSTANTS.iter().any(|(own, _)| *own == name);
    let function = UNARY.iter().any(|(own, _)| *own == name) || FUNCTIONS.contains(&name);
    constant || function || ["and", "or", "not"].contains(&name)
}

/// The length of the identifier at the start of `text`.
pub fn name_len(text: &str) -> usize {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let len = text.find(|letter| !is_part(letter)).unwrap_or(text.len());
    if text.starts_with(|first: char| first.is_ascii_digit()) { 0 } else { len }
}

/// The length of the number at the start of `text`.
fn number_len(text: &str) -> usize {
    let digits = |from: usize| text[from..].bytes().take_while(u8::is_ascii_digit).count();
    let mut len = digits(0);
    if text[len..].starts_with('.') {
        len += 1 + digits(len + 1);
    }
    if text[len..].starts_with(['e', 'E']) {
        let sign = usize::from(text[len + 1..].starts_with(['+', '-']));
        let exponent = digits(len + 1 + sign);
        len += if exponent > 0 { 1 + sign + exponent } else { 0 };
    }
    len
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Token<'t> {
    Number(f64),
    /// A name, an operator or punctuation.
    Word(&'t str),
    End,
}

/// Parses `text`, in which `names` are the names of the inputs.
///
/// # Errors
/// `Kind::Usage`, with the column.
pub fn parse(text: &str, names: &[&str]) -> Result<Expression> {
    let mut parser =
        Parser { text, names, start: 0, end: 0, token: Token::End, result: Expression::default() };
    parser.advance()?;
    parser.expression(0, 0)?;
    match parser.token {
        Token::End => Ok(parser.result),
        _ => Err(parser.wrong("expected an operator or the end")),
    }
}

struct Parser<'t> {
    text: &'t str,
    names: &'t [&'t str],
    /// The bytes of `token` in `text`.
    start: usize,
    end: usize,
    token: Token<'t>,
    result: Expression,
}

impl Parser<'_> {
    /// An error at the current token.
    fn wrong(&self, text: &str) -> Error {
        let column = self.text[..self.start].chars().count() + 1;
        Error::usage(format_args!("expression, column {column}: {text}"))
    }

    /// Reads the next token.
    fn advance(&mut self) -> Result<()> {
        let rest = self.text[self.end..].trim_start();
        self.start = self.text.len() - rest.len();
        let (name, number) = (name_len(rest), number_len(rest));
        let symbol = SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol));
        let len = if name > 0 { name } else { symbol.map_or(number, str::len) };
        self.end = self.start + len;
        self.token = match rest[..len].parse() {
            _ if rest.is_empty() => Token::End,
            Ok(value) if name == 0 => Token::Number(value),
            _ if name > 0 || symbol.is_some() => Token::Word(&rest[..len]),
            _ if rest.starts_with('=') => return Err(self.wrong("use == to compare")),
            _ => {
                let letter: String = rest.chars().take(1).collect();
                return Err(self.wrong(&format!("unexpected character {letter}")));
            }
        };
        Ok(())
    }

    /// Goes past the token `word`.
    fn expect(&mut self, word: &str, error: &str) -> Result<()> {
        if self.token == Token::Word(word) { self.advance() } else { Err(self.wrong(error)) }
    }

    /// Parses operands and the operators between them whose precedence is at least `min`.
    fn expression(&mut self, min: u8, level: usize) -> Result<()> {
        if level > LEVELS {
            return Err(self.wrong(&format!("expected at most {LEVELS} levels of nesting")));
        }
        self.operand(level + 1)?;
        let mut is_compared = false;
        while let Token::Word(word) = self.token
            && let Some((precedence, right, operator)) = binary(word)
            && precedence >= min
        {
            if precedence == COMPARISON && std::mem::replace(&mut is_compared, true) {
                return Err(self.wrong("comparisons cannot follow each other: join them by and"));
            }
            is_compared = precedence == COMPARISON;
            self.advance()?;
            self.expression(right, level + 1)?;
            self.result.push(Instruction::Binary(operator));
        }
        Ok(())
    }

    fn operand(&mut self, level: usize) -> Result<()> {
        let wrong = || Err(self.wrong("expected a number, a name or ("));
        let token = self.token;
        let Token::Word(word) = token else {
            let Token::Number(value) = token else { return wrong() };
            self.result.push(Instruction::Number(value));
            return self.advance();
        };
        let prefix = match word {
            "-" => Some((SIGN, Some(Unary::Negate))),
            "+" => Some((SIGN, None)),
            "not" | "!" => Some((NOT, Some(Unary::Not))),
            _ => None,
        };
        if let Some((precedence, operator)) = prefix {
            self.advance()?;
            self.expression(precedence, level)?;
            operator.into_iter().for_each(|own| self.result.push(Instruction::Unary(own)));
            return Ok(());
        }
        if word == "(" {
            self.advance()?;
            self.expression(0, level)?;
            return self.expect(")", "expected an operator or )");
        }
        let input = self.names.iter().position(|name| *name == word);
        let constant = CONSTANTS.iter().find(|(name, _)| *name == word);
        match (input, constant) {
            (Some(input), _) => self.result.push(Instruction::Input(input)),
            (_, Some(&(_, value))) => self.result.push(Instruction::Number(value)),
            _ if name_len(word) == 0 || ["and", "or"].contains(&word) => return wrong(),
            _ => return self.call(word, level),
        }
        self.advance()
    }

    /// Parses the arguments of the function `name`.
    fn call(&mut self, name: &str, level: usize) -> Result<()> {
        let unary = UNARY.iter().find(|(own, _)| *own == name).map(|&(_, unary)| unary);
        if unary.is_none() && !FUNCTIONS.contains(&name) {
            let constants = CONSTANTS.map(|(name, _)| name);
            let names = [self.names, &constants].concat().join(", ");
            let functions = UNARY.map(|(name, _)| name);
            let functions = [&functions[..], &FUNCTIONS].concat().join(", ");
            return Err(self.wrong(&format!(
                "unknown name {name}; names are {names}, functions are {functions}"
            )));
        }
        let expected = match name {
            "min" | "max" => 2,
            "clamp" | "where" => 3,
            _ => 1,
        };
        self.advance()?;
        self.expect("(", &format!("expected ( after {name}"))?;
        let mut count = 0;
        loop {
            self.expression(0, level)?;
            count += 1;
            match (name, count) {
                ("min", 2..) | ("clamp", 3) => self.result.push(Instruction::Binary(Binary::Min)),
                ("max", 2..) | ("clamp", 2) => self.result.push(Instruction::Binary(Binary::Max)),
                ("where", 3) => self.result.push(Instruction::Where),
                _ => unary.into_iter().for_each(|own| self.result.push(Instruction::Unary(own))),
            }
            let takes_more = count < expected || ["min", "max"].contains(&name);
            if self.token != Token::Word(",") {
                break;
            }
            if !takes_more {
                return Err(self.wrong(&format!("{name} takes {expected} values: expected )")));
            }
            self.advance()?;
        }
        if count < expected {
            let more = if expected == 2 { " or more" } else { "" };
            return Err(
                self.wrong(&format!("{name} takes {expected}{more} values: expected a comma"))
            );
        }
        self.expect(")", "expected an operator, a comma or )")
    }
}
